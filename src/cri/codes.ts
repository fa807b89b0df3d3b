/** The enum values of CRI v1. Zero is the default. */
export const PROTOCOL = { TCP: 0, UDP: 1, SCTP: 2 } as const
export const PROPAGATION = { private: 0, hostToContainer: 1, bidirectional: 2 } as const
/** The namespace of the pod, of the container, of the node, or of a target container. */
export const NAMESPACE = { pod: 0, container: 1, node: 2, target: 3 } as const
export const SANDBOX_STATE = { ready: 0, notReady: 1 } as const
export const CONTAINER_STATE = { created: 0, running: 1, exited: 2, unknown: 3 } as const
export const CONTAINER_EVENT = { created: 0, started: 1, stopped: 2, deleted: 3 } as const
export const PROFILE = { runtimeDefault: 0, unconfined: 1, localhost: 2 } as const
export const GROUPS_POLICY = { merge: 0, strict: 1 } as const
export const CGROUP_DRIVER = { systemd: 0, cgroupfs: 1 } as const
