// The batching rules, with the names that batching/rules.yaml uses.
#pragma once

namespace rushlight::autograd::batching {
class Call;
namespace rules {

void compose(Call& c);
void pointwise(Call& c);
void copy_in_place(Call& c);
void loop(Call& c);
void front(Call& c);
void matrices(Call& c);
void padded(Call& c);
void leading(Call& c);
void leading_matrices(Call& c);
void side_by_side(Call& c);
void batched_first(Call& c);
void clone(Call& c);
void depends_on_values(Call& c);
void unsupported(Call& c);
void dims(Call& c);
void reduce_max(Call& c);
void reduce_min(Call& c);
void reduce_median(Call& c);
void reduce_nanmedian(Call& c);
void permute(Call& c);
void transpose_matrix(Call& c);
void squeeze_all(Call& c);
void view(Call& c);
void view_as(Call& c);
void expand(Call& c);
void as_strided(Call& c);
void reshape_in_place(Call& c);
void sized(Call& c);
void cat(Call& c);
void mm(Call& c);
void bmm(Call& c);
void mv(Call& c);
void dot(Call& c);
void add_product(Call& c);
void linear(Call& c);
void convolution(Call& c);
void convolution_backward(Call& c);
void images1(Call& c);
void images2(Call& c);
void images3(Call& c);
void samples(Call& c);
void attention(Call& c);
void index(Call& c);
void index_put(Call& c);
void index_backward(Call& c);
void index_select(Call& c);
void along_index(Call& c);
void take(Call& c);
void put(Call& c);
void masked_select(Call& c);
void masked_scatter(Call& c);
void embedding(Call& c);
void embedding_backward(Call& c);
void searchsorted(Call& c);
void by_shared_table(Call& c);
void matrices_alone(Call& c);
void solve(Call& c);
void matrix_pair(Call& c);
void with_pivots(Call& c);
void layer_norm(Call& c);
void group_norm(Call& c);
void batch_norm(Call& c);
void nll_loss(Call& c);
void loss_backward(Call& c);
void cross_entropy(Call& c);
void random_sizes(Call& c);
void random_one(Call& c);
void random_like(Call& c);
void random_each(Call& c);
void random_in_place(Call& c);

}  // namespace rules
}  // namespace rushlight::autograd::batching
