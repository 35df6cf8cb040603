//! Trains the convolutional network of docs/examples/digits.py on handwritten digits: `digits data.bin`. train.py writes
//! this file, which contains the number of training and test images, their pixels, and their labels.

const std = @import("std");
const rl = @import("rushlight.zig");

const File = opaque {};
extern fn fopen(path: [*:0]const u8, mode: [*:0]const u8) ?*File;
extern fn fread(data: *anyopaque, size: usize, count: usize, file: *File) usize;
extern fn fclose(file: *File) c_int;

const pixels = 64;
const filters = 32;
const batch = 32;
const epochs = 8;

const Data = struct { train: usize, images: []f32, labels: []i64 };

fn read(path: [*:0]const u8) !Data {
    const file = fopen(path, "rb") orelse return error.NoFile;
    defer _ = fclose(file);
    var counts: [2]i64 = undefined;
    if (fread(&counts, 8, 2, file) != 2) return error.ShortFile;
    const count: usize = @intCast(counts[0] + counts[1]);
    const images = try std.heap.c_allocator.alloc(f32, count * pixels);
    const labels = try std.heap.c_allocator.alloc(i64, count);
    if (fread(images.ptr, 4, images.len, file) != images.len) return error.ShortFile;
    if (fread(labels.ptr, 8, count, file) != count) return error.ShortFile;
    return .{ .train = @intCast(counts[0]), .images = images, .labels = labels };
}

const Network = struct {
    parameters: [4]rl.Tensor, // filters, their bias, weight, bias
    momenta: [4]rl.Tensor,

    fn init() !Network {
        var scope = rl.Scope{};
        defer scope.deinit();
        var made: Network = undefined;
        const shapes = [_][]const i64{ &.{ filters, 1, 3, 3 }, &.{filters}, &.{ 10, filters * 36 }, &.{10} };
        for (shapes, 0..) |shape, i| {
            var inputs: i64 = 1;
            for (shape[1..]) |size| inputs *= size;
            const scale = if (shape.len > 1) 1.0 / @sqrt(@as(f64, @floatFromInt(inputs))) else 0.0;
            made.parameters[i] = try (try scope.call("mul", .{ try scope.call("randn", .{shape}), scale })).keep();
            made.momenta[i] = try (try scope.call("zeros", .{shape})).keep();
            try made.parameters[i].requireGrad();
        }
        return made;
    }
    fn deinit(self: *const Network) void {
        for (self.parameters) |tensor| tensor.free();
        for (self.momenta) |tensor| tensor.free();
    }

    /// Images (N, 1, 8, 8) to scores (N, 10).
    fn scores(self: *const Network, scope: *rl.Scope, images: rl.Tensor) !rl.Tensor {
        const p = self.parameters;
        const convolved = try scope.call("relu", .{try scope.call("conv2d", .{ images, p[0], p[1] })});
        return scope.call("linear", .{ try scope.call("flatten", .{ convolved, 1 }), p[2], p[3] });
    }

    /// Gradient descent with momentum 0.9.
    fn step(self: *const Network, rate: f64) !void {
        var scope = rl.Scope{};
        defer scope.deinit();
        const off = rl.noGrad();
        defer off.end();
        for (self.parameters, self.momenta) |parameter, momentum| {
            _ = try scope.call("mul_", .{ momentum, 0.9 });
            _ = try scope.call("add_", .{ momentum, try scope.grad(parameter) });
            _ = try scope.call("sub_", .{ parameter, momentum, rate });
            try parameter.clearGrad();
        }
    }
};

fn accuracy(network: *const Network, images: rl.Tensor, labels: rl.Tensor) !f64 {
    var scope = rl.Scope{};
    defer scope.deinit();
    const off = rl.noGrad();
    defer off.end();
    const best = try scope.call("argmax", .{ try network.scores(&scope, images), 1 });
    const right = try scope.call("to.dtype", .{ try scope.call("eq", .{ best, labels }), rl.DType.float64 });
    return (try scope.call("mean", .{right})).item(f64);
}

fn train(path: [*:0]const u8) !void {
    const data = try read(path);
    var scope = rl.Scope{};
    defer scope.deinit();
    const count: i64 = @intCast(data.labels.len);
    const trained: i64 = @intCast(data.train);
    const images = try scope.over(f32, data.images, &.{ count, 1, 8, 8 });
    const labels = try scope.over(i64, data.labels, &.{count});

    const network = try Network.init();
    defer network.deinit();
    for (0..epochs) |epoch| {
        const order = try scope.call("randperm", .{trained});
        var total: f64 = 0;
        var first: i64 = 0;
        while (first + batch <= trained) : (first += batch) {
            var inner = rl.Scope{};
            defer inner.deinit();
            const indices = try inner.call("slice", .{ order, 0, first, first + batch });
            const x = try inner.call("index_select", .{ images, 0, indices });
            const y = try inner.call("index_select", .{ labels, 0, indices });
            const loss = try inner.call("cross_entropy_loss", .{ try network.scores(&inner, x), y });
            try loss.backward();
            try network.step(0.02);
            total += try loss.item(f32);
        }
        std.debug.print("epoch {d}, loss {d:.4}\n", .{ epoch, total * batch / @as(f64, @floatFromInt(trained)) });
    }
    const test_images = try scope.call("slice", .{ images, 0, trained, count });
    const test_labels = try scope.call("slice", .{ labels, 0, trained, count });
    const reached = try accuracy(&network, test_images, test_labels);
    std.debug.print("accuracy {d:.4}\n", .{reached});
    if (reached < 0.96) return error.LearntTooLittle;
}

/// A wrong call returns an error of Zig, and `errorText` returns the library's text.
fn refuses() !void {
    var scope = rl.Scope{};
    defer scope.deinit();
    const x = try scope.call("ones", .{@as([]const i64, &.{ 2, 3 })});
    if (scope.call("matmul", .{ x, x })) |_| return error.WasNotRefused else |wrong| {
        std.debug.print("{s}: {s}\n", .{ @errorName(wrong), rl.errorText() });
    }
    if (scope.call("matmull", .{ x, x })) |_| return error.WasNotRefused else |wrong| {
        std.debug.print("{s}: {s}\n", .{ @errorName(wrong), rl.errorText() });
    }
}

pub export fn main(count: c_int, words: [*]const [*:0]const u8) c_int {
    const run = struct {
        fn all(path: [*:0]const u8) !void {
            try rl.init();
            try rl.manualSeed(1);
            try refuses();
            try train(path);
        }
    }.all;
    if (count != 2) return 2;
    run(words[1]) catch |wrong| {
        std.debug.print("{s}: {s}\n", .{ @errorName(wrong), rl.errorText() });
        return 1;
    };
    return 0;
}
