"""Small language models of transformers and torch.nn with their losses, to be exported.

Every function returns a module whose result is the loss and a dict of its example inputs.
"""

import torch
import transformers

functional = torch.nn.functional
VOCAB = 53
WIDTH = 16
BATCH, LENGTH = 4, 10


class Loss(torch.nn.Module):
    """`model` and a function (model, *inputs) -> loss as one module."""

    def __init__(self, model, loss):
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, *inputs):
        return self.loss(self.model, *inputs)


def tokens(*shape, vocab=VOCAB):
    return torch.randint(vocab, shape or (BATCH, LENGTH))


def lengths_mask():
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1))
    return (torch.arange(LENGTH) < lengths).long()


def next_tokens(model):
    """A causal model with the cross-entropy of given next tokens."""
    def loss(m, input_ids, labels):
        logits = m(input_ids=input_ids, use_cache=False).logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return Loss(model, loss), {"input_ids": tokens(), "labels": tokens()}


def t5():
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=VOCAB, d_model=WIDTH, d_kv=8, d_ff=24, num_layers=2, num_heads=2,
        relative_attention_num_buckets=8, relative_attention_max_distance=12, dropout_rate=0.0,
        feed_forward_proj="gated-gelu", decoder_start_token_id=0, use_cache=False))

    def loss(m, input_ids, attention_mask, labels):
        return m(input_ids=input_ids, attention_mask=attention_mask, labels=labels).loss
    labels = tokens(BATCH, 7)
    labels[0, 5:] = -100
    return Loss(model, loss), {"input_ids": tokens(), "attention_mask": lengths_mask(),
                               "labels": labels}


def distilbert():
    model = transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(
        vocab_size=VOCAB, dim=WIDTH, hidden_dim=24, n_layers=2, n_heads=2, dropout=0.0,
        attention_dropout=0.0, seq_classif_dropout=0.0, max_position_embeddings=16, num_labels=3))

    def loss(m, input_ids, attention_mask, labels):
        logits = m(input_ids=input_ids, attention_mask=attention_mask).logits
        return functional.cross_entropy(logits, labels)
    return Loss(model, loss), {"input_ids": tokens(), "attention_mask": lengths_mask(),
                               "labels": torch.randint(3, (BATCH,))}


def albert():
    model = transformers.AlbertForMaskedLM(transformers.AlbertConfig(
        vocab_size=VOCAB, embedding_size=8, hidden_size=WIDTH, intermediate_size=24,
        num_hidden_layers=3, num_attention_heads=2, max_position_embeddings=16,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0))

    def loss(m, input_ids, labels):
        return m(input_ids=input_ids, labels=labels).loss
    labels = torch.where(torch.rand(BATCH, LENGTH) < 0.4, tokens(), -100)
    return Loss(model, loss), {"input_ids": tokens(), "labels": labels}


def deberta():
    model = transformers.DebertaV2ForTokenClassification(transformers.DebertaV2Config(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, relative_attention=True, position_buckets=4,
        pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", share_att_key=True, num_labels=5))

    def loss(m, input_ids, attention_mask, labels):
        logits = m(input_ids=input_ids, attention_mask=attention_mask).logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return Loss(model, loss), {"input_ids": tokens(), "attention_mask": lengths_mask(),
                               "labels": tokens(BATCH, LENGTH, vocab=5)}


def gpt_neox():
    return next_tokens(transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=32, rotary_pct=0.5,
        hidden_dropout=0.0, attention_dropout=0.0)))


def qwen2():
    return next_tokens(transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
        tie_word_embeddings=True)))


def gemma3():
    """Sliding windows in every second layer, norms of queries and keys, scaled embeddings."""
    return next_tokens(transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=32,
        sliding_window=4, layer_types=["sliding_attention", "full_attention"],
        attn_implementation="eager")))


def mixtral():
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32,
        num_local_experts=4, num_experts_per_tok=2, output_router_logits=True,
        router_aux_loss_coef=0.05, experts_implementation="batched_mm"))

    def loss(m, input_ids, labels):
        return m(input_ids=input_ids, labels=labels, use_cache=False).loss
    return Loss(model, loss), {"input_ids": tokens(), "labels": tokens()}


def mamba():
    """A selective state space: the recurrence over the sequence is unrolled by the exporters."""
    return next_tokens(transformers.MambaForCausalLM(transformers.MambaConfig(
        vocab_size=VOCAB, hidden_size=12, state_size=4, num_hidden_layers=1, expand=2,
        time_step_rank=4, use_mambapy=False, use_cache=False)))


class LstmClassifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCAB, WIDTH, padding_idx=0)
        self.lstm = torch.nn.LSTM(WIDTH, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(24, 3)

    def forward(self, input_ids):
        states, (last, _) = self.lstm(self.embedding(input_ids))
        pooled = states.max(dim=1).values + torch.cat([last[-2], last[-1]], 1)
        return self.head(pooled)


def lstm_classifier():
    def loss(m, input_ids, labels):
        scores = m(input_ids)
        weights = torch.tensor([1.0, 2.0, 0.5], dtype=scores.dtype)
        return functional.cross_entropy(scores, labels, weight=weights)
    ids = tokens()
    ids[1, 6:] = 0
    return Loss(LstmClassifier(), loss), {"input_ids": ids, "labels": torch.randint(3, (BATCH,))}


class GruTranslator(torch.nn.Module):
    """An encoder and a decoder of GRUs with additive attention."""

    def __init__(self):
        super().__init__()
        self.source = torch.nn.Embedding(VOCAB, WIDTH)
        self.target = torch.nn.Embedding(VOCAB, WIDTH)
        self.encoder = torch.nn.GRU(WIDTH, 12)
        self.decoder = torch.nn.GRU(WIDTH, 12)
        self.query = torch.nn.Linear(12, 8)
        self.key = torch.nn.Linear(12, 8, bias=False)
        self.score = torch.nn.Linear(8, 1, bias=False)
        self.head = torch.nn.Linear(24, VOCAB)

    def forward(self, source, target):
        states, last = self.encoder(self.source(source).transpose(0, 1))
        decoded, _ = self.decoder(self.target(target).transpose(0, 1), last)
        energy = torch.tanh(self.query(decoded).unsqueeze(1) + self.key(states).unsqueeze(0))
        weights = self.score(energy).squeeze(-1).softmax(1)
        context = torch.einsum("tsb,sbh->tbh", weights, states)
        return self.head(torch.cat([decoded, context], -1)).transpose(0, 1)


def gru_translator():
    def loss(m, source, target, labels):
        log_probabilities = m(source, target).log_softmax(-1)
        return functional.nll_loss(log_probabilities.flatten(0, 1), labels.flatten(),
                                   ignore_index=1)
    return Loss(GruTranslator(), loss), {"source": tokens(), "target": tokens(BATCH, 6),
                                         "labels": tokens(BATCH, 6)}


def transformer_encoder():
    """torch.nn's own layers, post-norm, with padding."""
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 24, dropout=0.0, batch_first=True,
                                                     activation="gelu")
            self.embedding = torch.nn.Embedding(VOCAB, WIDTH)
            self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = torch.nn.Linear(WIDTH, 1)

        def forward(self, input_ids, is_padding):
            x = self.encoder(self.embedding(input_ids), src_key_padding_mask=is_padding)
            kept = (~is_padding).unsqueeze(-1)
            mean = (x * kept).sum(1) / kept.sum(1)
            return self.head(mean).squeeze(-1)

    def loss(m, input_ids, is_padding, labels):
        return functional.binary_cross_entropy_with_logits(m(input_ids, is_padding), labels)
    return Loss(Encoder(), loss), {"input_ids": tokens(), "is_padding": lengths_mask() == 0,
                                   "labels": torch.tensor([0.0, 1.0, 1.0, 0.0])}


MODELS = [t5, distilbert, albert, deberta, gpt_neox, qwen2, gemma3, mixtral, mamba,
          lstm_classifier, gru_translator, transformer_encoder]
