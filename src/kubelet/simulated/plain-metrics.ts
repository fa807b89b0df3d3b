/** `/metrics` of a simulated kubelet: what tools look for first. Pure. */
export function plainMetrics(node: string, runningPods: number): string {
  return [
    "# HELP kubelet_node_name [ALPHA] The node's name. The count is always 1.",
    '# TYPE kubelet_node_name gauge',
    `kubelet_node_name{node="${node}"} 1`,
    '# HELP kubelet_running_pods [BETA] Number of pods that have a running pod sandbox',
    '# TYPE kubelet_running_pods gauge',
    `kubelet_running_pods ${runningPods}`,
    '',
  ].join('\n')
}
