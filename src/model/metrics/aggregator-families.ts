/** Families about servers behind this one. */
export const AGGREGATOR_FAMILIES = {
  aggregator_discovery_aggregation_count_total: [
    'counter',
    'ALPHA',
    '',
    'How often the aggregated discovery document was made.',
  ],
  aggregator_unavailable_apiservice: [
    'gauge',
    'ALPHA',
    'name',
    'Whether an APIService cannot be used now, by its name.',
  ],
  aggregator_unavailable_apiservice_total: [
    'counter',
    'ALPHA',
    'name reason',
    'How often an APIService could no longer be used, by its name and by why.',
  ],
} as const
