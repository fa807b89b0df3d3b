/** Families about the addresses and ports that Services get. */
export const SERVICE_FAMILIES = {
  apiserver_nodeport_repair_reconcile_errors_total: [
    'counter',
    'ALPHA',
    '',
    'Repairs of the ledger of node ports that failed.',
  ],
  kube_apiserver_clusterip_allocator_allocated_ips: [
    'gauge',
    'ALPHA',
    'cidr',
    'Addresses of a range that Services have.',
  ],
  kube_apiserver_clusterip_allocator_allocation_duration_seconds: [
    'histogram',
    'ALPHA',
    'cidr',
    'How long it took to take an address, in seconds.',
    { buckets: 'usual' },
  ],
  kube_apiserver_clusterip_allocator_allocation_errors_total: [
    'counter',
    'ALPHA',
    'cidr scope',
    'Addresses that could not be had: one that was asked for, or any.',
  ],
  kube_apiserver_clusterip_allocator_allocation_total: [
    'counter',
    'ALPHA',
    'cidr scope',
    'Addresses that were taken: as asked for, or any.',
  ],
  kube_apiserver_clusterip_allocator_available_ips: ['gauge', 'ALPHA', 'cidr', 'Addresses of a range that are free.'],
  kube_apiserver_nodeport_allocator_allocated_ports: ['gauge', 'ALPHA', '', 'Node ports that Services have.'],
  kube_apiserver_nodeport_allocator_allocation_errors_total: [
    'counter',
    'ALPHA',
    'scope',
    'Node ports that could not be had: one that was asked for, or any.',
  ],
  kube_apiserver_nodeport_allocator_allocation_total: [
    'counter',
    'ALPHA',
    'scope',
    'Node ports that were taken: as asked for, or any.',
  ],
  kube_apiserver_nodeport_allocator_available_ports: ['gauge', 'ALPHA', '', 'Node ports that are free.'],
} as const
