//! rushlight for Zig: a safe interface to rushlight.h.
//!
//! Tensors belong to a scope, which frees them at its end; `keep` returns a tensor that outlives the scope. A failed call
//! returns a Zig error, and `errorText` returns the message. Operators are called by name, with numbers, slices, tensors and
//! null as arguments.

const std = @import("std");

/// The declarations of rushlight.h that this file uses.
pub const c = struct {
    pub const Tensor = opaque {};
    pub const Status = enum(c_uint) { ok, runtime, value, type, index, not_implemented, out_of_memory, other, buffer, interrupted, linalg, _ };
    pub const Device = extern struct { type: i32 = 0, index: i32 = -1 };
    pub const Array = extern struct {
        struct_size: usize = @sizeOf(Array),
        dtype: i32 = 0,
        ndim: i32 = 0,
        sizes: ?[*]const i64 = null,
        strides: ?[*]const i64 = null,
        data: ?*anyopaque = null,
        release: ?*const fn (?*anyopaque) callconv(.c) void = null,
        context: ?*anyopaque = null,
        flags: u64 = 0,
    };
    pub const Info = extern struct {
        struct_size: usize = @sizeOf(Info),
        dtype: i32 = 0,
        ndim: i32 = 0,
        sizes: [*]const i64 = undefined,
        strides: [*]const i64 = undefined,
        numel: i64 = 0,
        device: Device = .{},
        requires_grad: i32 = 0,
        is_leaf: i32 = 0,
        is_contiguous: i32 = 0,
        is_read_only: i32 = 0,
    };
    pub const Kind = enum(i32) { none, boolean, integer, real, complex, string, dtype, device, tensor, integers, tensors, generator, _ };
    pub const Payload = extern union {
        integer: i64,
        real: f64,
        complex: extern struct { real: f64, imaginary: f64 },
        device: Device,
        string: [*]const u8,
        integers: [*]const i64,
        tensor: ?*c.Tensor,
        tensors: [*]const ?*c.Tensor,
    };
    pub const Value = extern struct { kind: Kind = .none, reserved: i32 = 0, count: usize = 0, as: Payload = .{ .integer = 0 } };
    pub const OperatorInfo = extern struct {
        struct_size: usize = @sizeOf(OperatorInfo),
        name: [*:0]const u8 = undefined,
        schema: [*:0]const u8 = undefined,
        hash: u64 = 0,
        num_arguments: usize = 0,
        num_required: usize = 0,
        num_results: usize = 0,
    };

    pub extern fn rl_c_version() u32;
    pub extern fn rl_error_text() [*:0]const u8;
    pub extern fn rl_tensor_from_array(array: *const Array, result: *?*c.Tensor) Status;
    pub extern fn rl_tensor_to_array(tensor: *c.Tensor, result: *Array) Status;
    pub extern fn rl_array_free(array: *Array) void;
    pub extern fn rl_tensor_free(tensor: ?*c.Tensor) void;
    pub extern fn rl_tensor_share(tensor: *c.Tensor, result: *?*c.Tensor) Status;
    pub extern fn rl_tensor_describe(tensor: *const c.Tensor, info: *Info) Status;
    pub extern fn rl_set_grad_mode(on: i32) i32;
    pub extern fn rl_tensor_set_requires_grad(tensor: *c.Tensor, on: i32) Status;
    pub extern fn rl_tensor_grad(tensor: *const c.Tensor, result: *?*c.Tensor) Status;
    pub extern fn rl_tensor_set_grad(tensor: *c.Tensor, gradient: ?*c.Tensor) Status;
    pub extern fn rl_backward(tensors: [*]const ?*c.Tensor, gradients: ?[*]const ?*c.Tensor, count: usize, options: ?*const anyopaque) Status;
    pub extern fn rl_manual_seed(seed: u64) Status;
    pub extern fn rl_call(name: [*:0]const u8, arguments: [*]const Value, num_arguments: usize, results: [*]Value, num_results: usize) Status;
    pub extern fn rl_value_free(value: *Value) void;
    pub extern fn rl_operator_find(name: [*:0]const u8, info: *OperatorInfo) Status;
    pub extern fn rl_autograd_initialize() Status; // of librushlight_autograd.so
};

pub const Error = error{ Runtime, Value, Type, Index, NotImplemented, OutOfMemory, Other, Buffer, Interrupted, LinAlg, NoGradient, Overflow };

/// The message of the last failed call on this thread.
pub fn errorText() []const u8 {
    return std.mem.span(c.rl_error_text());
}

fn check(status: c.Status) Error!void {
    return switch (status) {
        .ok => {},
        .runtime => Error.Runtime,
        .value => Error.Value,
        .type => Error.Type,
        .index => Error.Index,
        .not_implemented => Error.NotImplemented,
        .out_of_memory => Error.OutOfMemory,
        .buffer => Error.Buffer,
        .interrupted => Error.Interrupted,
        .linalg => Error.LinAlg,
        else => Error.Other,
    };
}

/// Attaches gradients. Call it once, before any other function.
pub fn init() Error!void {
    if (c.rl_c_version() != 1) return Error.Runtime;
    try check(c.rl_autograd_initialize());
}

pub fn manualSeed(seed: u64) Error!void {
    try check(c.rl_manual_seed(seed));
}

pub const DType = enum(i32) { bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, uint16, uint32, uint64, complex64, complex128, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu };

fn dtypeOf(comptime T: type) DType {
    return switch (T) {
        bool => .bool,
        u8 => .uint8,
        i8 => .int8,
        i16 => .int16,
        i32 => .int32,
        i64 => .int64,
        f16 => .float16,
        f32 => .float32,
        f64 => .float64,
        u16 => .uint16,
        u32 => .uint32,
        u64 => .uint64,
        else => @compileError("no dtype holds elements of type " ++ @typeName(T)),
    };
}

/// A tensor that is owned by a scope, or by the caller of `keep`.
pub const Tensor = struct {
    handle: *c.Tensor,

    /// Another reference to the tensor, which outlives the scope; release it with `free`.
    pub fn keep(self: Tensor) Error!Tensor {
        var other: ?*c.Tensor = null;
        try check(c.rl_tensor_share(self.handle, &other));
        return .{ .handle = other.? };
    }
    pub fn free(self: Tensor) void {
        c.rl_tensor_free(self.handle);
    }

    pub fn info(self: Tensor) Error!c.Info {
        var found = c.Info{};
        try check(c.rl_tensor_describe(self.handle, &found));
        return found;
    }
    /// The sizes, valid while the tensor lives.
    pub fn shape(self: Tensor) Error![]const i64 {
        const found = try self.info();
        return found.sizes[0..@intCast(found.ndim)];
    }
    pub fn requireGrad(self: Tensor) Error!void {
        try check(c.rl_tensor_set_requires_grad(self.handle, 1));
    }
    /// Computes the gradients of this tensor of one element, and adds them to the gradients of the leaves.
    pub fn backward(self: Tensor) Error!void {
        const one = [_]?*c.Tensor{self.handle};
        try check(c.rl_backward(&one, null, 1, null));
    }
    pub fn clearGrad(self: Tensor) Error!void {
        try check(c.rl_tensor_set_grad(self.handle, null));
    }
    /// The number in a tensor of one element.
    pub fn item(self: Tensor, comptime T: type) Error!T {
        var seen = c.Array{};
        try check(c.rl_tensor_to_array(self.handle, &seen));
        defer c.rl_array_free(&seen);
        if ((try self.info()).numel != 1) return Error.Value;
        if (seen.dtype != @backingInt(dtypeOf(T))) return Error.Type;
        const data: *const T = @ptrCast(@alignCast(seen.data.?));
        return data.*;
    }
};

/// Owns the tensors that are made in it.
pub const Scope = struct {
    tensors: std.ArrayList(*c.Tensor) = .empty,
    const allocator = std.heap.c_allocator;

    pub fn deinit(self: *Scope) void {
        for (self.tensors.items) |tensor| c.rl_tensor_free(tensor);
        self.tensors.deinit(allocator);
    }

    fn own(self: *Scope, handle: ?*c.Tensor) Error!Tensor {
        const tensor = handle orelse return Error.Type;
        self.tensors.append(allocator, tensor) catch {
            c.rl_tensor_free(tensor);
            return Error.OutOfMemory;
        };
        return .{ .handle = tensor };
    }

    /// A tensor over `data`, which must be kept until the last tensor over it is freed.
    pub fn over(self: *Scope, comptime T: type, data: []T, sizes: []const i64) Error!Tensor {
        var count: i64 = 1;
        for (sizes) |size| count = std.math.mul(i64, count, size) catch return Error.Value;
        if (count != @as(i64, @intCast(data.len))) return Error.Value;
        var made: ?*c.Tensor = null;
        const array = c.Array{ .dtype = @backingInt(dtypeOf(T)), .ndim = @intCast(sizes.len), .sizes = sizes.ptr, .data = data.ptr };
        try check(c.rl_tensor_from_array(&array, &made));
        return self.own(made);
    }

    /// The gradient of a tensor, or the error NoGradient, which has no text.
    pub fn grad(self: *Scope, tensor: Tensor) Error!Tensor {
        var found: ?*c.Tensor = null;
        try check(c.rl_tensor_grad(tensor.handle, &found));
        return self.own(found orelse return Error.NoGradient);
    }

    /// Calls an operator with one result: `scope.call("add", .{ x, 1.5 })`. Trailing arguments that have a default may be
    /// left out; null stands for None.
    pub fn call(self: *Scope, name: [:0]const u8, arguments: anytype) Error!Tensor {
        var results: [1]c.Value = undefined;
        try invoke(name, arguments, &results);
        if (results[0].kind != .tensor) {
            c.rl_value_free(&results[0]);
            return Error.Type;
        }
        return self.own(results[0].as.tensor);
    }
};

/// Calls an operator without results.
pub fn run(name: [:0]const u8, arguments: anytype) Error!void {
    var results: [0]c.Value = undefined;
    try invoke(name, arguments, &results);
}

fn invoke(name: [:0]const u8, arguments: anytype, results: []c.Value) Error!void {
    var values: [arguments.len]c.Value = undefined;
    inline for (0..arguments.len) |i| values[i] = try boxed(arguments[i]);
    try check(c.rl_call(name.ptr, &values, values.len, results.ptr, results.len));
}

fn boxed(argument: anytype) Error!c.Value {
    const T = @TypeOf(argument);
    switch (T) {
        Tensor => return .{ .kind = .tensor, .as = .{ .tensor = argument.handle } },
        DType => return .{ .kind = .dtype, .as = .{ .integer = @backingInt(argument) } },
        []const Tensor, []Tensor => return .{ .kind = .tensors, .count = argument.len, .as = .{ .tensors = @ptrCast(argument.ptr) } },
        []const i64, []i64 => return .{ .kind = .integers, .count = argument.len, .as = .{ .integers = argument.ptr } },
        []const u8 => return .{ .kind = .string, .count = argument.len, .as = .{ .string = argument.ptr } },
        else => {},
    }
    return switch (@typeInfo(T)) {
        .null => .{},
        .bool => .{ .kind = .boolean, .as = .{ .integer = @intFromBool(argument) } },
        .int, .comptime_int => .{ .kind = .integer, .as = .{ .integer = std.math.cast(i64, argument) orelse return Error.Overflow } },
        .float, .comptime_float => .{ .kind = .real, .as = .{ .real = argument } },
        .pointer => boxed(@as(switch (@typeInfo(std.meta.Child(T))) {
            .array => |array| []const array.child,
            else => @compileError("no value of an operator has type " ++ @typeName(T)),
        }, argument)),
        else => @compileError("no value of an operator has type " ++ @typeName(T)),
    };
}

/// Turns recording off: `const grad = rl.noGrad(); defer grad.end();`
pub fn noGrad() GradMode {
    return .{ .before = c.rl_set_grad_mode(0) };
}
pub const GradMode = struct {
    before: i32,
    pub fn end(self: GradMode) void {
        _ = c.rl_set_grad_mode(self.before);
    }
};

test "misuse is an error" {
    try init();
    var scope = Scope{};
    defer scope.deinit();
    var numbers = [_]f32{ 1, 2, 3 };
    const x = try scope.over(f32, &numbers, &.{3});
    try std.testing.expectError(Error.Value, scope.over(f32, &numbers, &.{4}));
    try std.testing.expectError(Error.Value, scope.over(f32, &numbers, &.{ -1, -3 }));
    try std.testing.expectError(Error.Value, x.item(f32));
    try std.testing.expectError(Error.NoGradient, scope.grad(x));
    try std.testing.expectError(Error.Runtime, scope.call("no_operator", .{x}));
    try std.testing.expectError(Error.Type, scope.call("add", .{x}));
    try std.testing.expectError(Error.Type, scope.call("max.dim", .{ x, 0 }));
    try std.testing.expectError(Error.Overflow, scope.call("add", .{ x, @as(u64, std.math.maxInt(u64)) }));
    try std.testing.expectEqual(@as(f32, 6), try (try scope.call("sum", .{x})).item(f32));
}
