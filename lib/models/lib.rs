//! manifest.json, routing and budgets.
