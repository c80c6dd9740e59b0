//! The GGUF file format: header walk, exact expected size, why a file is not a model.
