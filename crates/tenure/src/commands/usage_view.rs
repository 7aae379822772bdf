//! What agents have used, as text.

use tenure_core::wire::UsageJson;

/// `1200 tokens of input, 4000 from a cache, 35 of output, $0.16`
pub(crate) fn sentence(used: UsageJson) -> String {
    let mut parts = vec![format!("{} tokens of input", used.input_tokens)];
    if used.cached_tokens > 0 {
        parts.push(format!("{} from a cache", used.cached_tokens));
    }
    if used.cache_write_tokens > 0 {
        parts.push(format!("{} to a cache", used.cache_write_tokens));
    }
    parts.push(format!("{} of output", used.output_tokens));
    parts.extend(used.usd.map(dollars));
    parts.join(", ")
}

/// At least cents; less than a cent is shown to its first digits.
pub(crate) fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}
