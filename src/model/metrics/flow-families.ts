/**
 * Families about whose turn it is. Requests are limited by two numbers and none waits in a queue: every seat belongs to
 * whichever level takes it, so what upstream says about lending, queues and fair shares is not said here.
 */
export const FLOW_FAMILIES = {
  apiserver_flowcontrol_current_executing_requests: [
    'gauge',
    'BETA',
    'priority_level flow_schema',
    'Requests of a flow schema that are being answered now; of a watch, until it has begun.',
  ],
  apiserver_flowcontrol_current_executing_seats: [
    'gauge',
    'BETA',
    'priority_level flow_schema',
    'Seats taken now: one for each request.',
  ],
  apiserver_flowcontrol_current_inqueue_requests: [
    'gauge',
    'BETA',
    'priority_level flow_schema',
    'Requests of a flow schema that wait for their turn.',
  ],
  apiserver_flowcontrol_dispatched_requests_total: [
    'counter',
    'BETA',
    'priority_level flow_schema',
    'Requests of a flow schema that were let through.',
  ],
  apiserver_flowcontrol_rejected_requests_total: [
    'counter',
    'BETA',
    'priority_level flow_schema reason',
    'Requests of a flow schema that were turned away.',
  ],
  apiserver_flowcontrol_request_execution_seconds: [
    'histogram',
    'ALPHA',
    'priority_level flow_schema type',
    'How long requests of a flow schema took once it was their turn, in seconds.',
    { buckets: 'waiting' },
  ],
  apiserver_flowcontrol_request_wait_duration_seconds: [
    'histogram',
    'BETA',
    'priority_level flow_schema execute',
    'How long requests of a flow schema waited for their turn, in seconds.',
    { buckets: 'waiting' },
  ],
} as const
