//! What a model's chat template says about thinking, and the same template with thinking off.
//!
//! llama-completion takes `--reasoning off` and `--reasoning-budget 0` but hands neither on to the template, so
//! the template itself is changed: it is Jinja, and one statement in front of it or behind it is enough.

/// Where the thoughts in a model's output begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thoughts {
    /// Nothing is expected; a block that opens the text is still taken for thoughts.
    Unexpected,
    /// The model opens them itself, or forgets to.
    ByModel,
    /// The prompt ends inside them.
    ByPrompt,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Whether a model with this template thinks.
pub(crate) fn thinks(template: &str) -> bool {
    template.contains(OPEN) || template.contains("enable_thinking")
}

/// Where thoughts begin when this template is rendered as it stands.
pub(crate) fn thoughts(template: &str) -> Thoughts {
    if !thinks(template) {
        Thoughts::Unexpected
    } else if opens(template) {
        Thoughts::ByPrompt
    } else {
        Thoughts::ByModel
    }
}

/// The template with the thoughts closed before the model's first word.
pub(crate) fn without_thinking(template: &str) -> String {
    if template.contains("enable_thinking") {
        return format!("{{%- set enable_thinking = false -%}}{template}");
    }
    let close = if opens(template) { "\\n</think>\\n\\n" } else { "<think>\\n\\n</think>\\n\\n" };
    format!("{template}{{%- if add_generation_prompt %}}{{{{- '{close}' }}}}{{%- endif %}}")
}

/// Whether the part that begins the answer leaves a block of thoughts open.
fn opens(template: &str) -> bool {
    let answer = template.rfind("add_generation_prompt").map_or("", |at| &template[at..]);
    let Some(open) = answer.rfind(OPEN) else { return false };
    let rest = &answer[open..];
    // A block closed only where thinking is off is open where it is on.
    rest.find(CLOSE).is_none_or(|close| rest[..close].contains("not enable_thinking"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    const SWITCHED: &str = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking \
                            is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}\
                            {%- endif %}";
    const BY_MODEL: &str = "{{ content.split('</think>')[-1] }}{# drops <think> #}{% if add_generation_prompt %}\
                            {{'<Assistant>'}}{% endif %}";
    const BY_PROMPT: &str = "{% if add_generation_prompt %}{{'<Assistant><think>\\n'}}{% endif %}";
    const CLOSED_IF_OFF: &str = "{% if add_generation_prompt %}{{'<think>\\n'}}{% if not enable_thinking %}\
                                 {{'</think>'}}{% endif %}{% endif %}";

    #[test]
    fn the_kinds_of_templates_are_told_apart() {
        assert_eq!(thoughts(PLAIN), Thoughts::Unexpected);
        assert_eq!(thoughts(SWITCHED), Thoughts::ByModel);
        assert_eq!(thoughts(BY_MODEL), Thoughts::ByModel);
        assert_eq!(thoughts(BY_PROMPT), Thoughts::ByPrompt);
        assert_eq!(thoughts(CLOSED_IF_OFF), Thoughts::ByPrompt);
        assert_eq!(thoughts(""), Thoughts::Unexpected);
    }

    #[test]
    fn thinking_is_turned_off_by_the_switch_or_by_an_empty_block() {
        assert!(without_thinking(SWITCHED).starts_with("{%- set enable_thinking = false -%}{%- if"));
        assert!(without_thinking(CLOSED_IF_OFF).starts_with("{%- set enable_thinking = false -%}"));
        let behind = |template: &str| without_thinking(template)[template.len()..].to_owned();
        assert_eq!(
            behind(BY_MODEL),
            "{%- if add_generation_prompt %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
        );
        assert_eq!(
            behind(BY_PROMPT),
            "{%- if add_generation_prompt %}{{- '\\n</think>\\n\\n' }}{%- endif %}"
        );
    }
}
