/** The requests that add a debug container to a pod, and a debug pod to a node, as `kubectl debug` does. */
import type { Container, EphemeralContainer, Pod, SecurityContext } from '#apis/core/v1.ts'

import { listPath, objectPath } from '../api/kinds.ts'
import type { ActionRequest, Target } from './action.ts'

export const DEFAULT_IMAGE = 'busybox'
const PODS = { group: '', version: 'v1', plural: 'pods' }

/** How much the debug container may. */
export type DebugProfile = 'general' | 'restricted'

export interface DebugOptions {
  readonly image: string
  readonly profile: DebugProfile
  /** Letters that make a name unique. */
  readonly suffix: string
}

export interface DebugStart {
  readonly request: ActionRequest
  /** Of the debug container. */
  readonly namespace: string
  readonly pod: string
  readonly container: string
}

const RESTRICTED: SecurityContext = {
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}
/** For debuggers: reads the memory of other processes of the pod. */
const TRACING: SecurityContext = { capabilities: { add: ['SYS_PTRACE'] } }

function interactive(name: string, image: string): Pick<Container, 'name' | 'image' | 'stdin' | 'tty'> {
  return { name, image, stdin: true, tty: true }
}

/** Adds a container to a running pod. `target`: the container whose processes it sees; empty: none. */
export function debugInPod({ object }: Target, { image, profile, suffix }: DebugOptions, target: string): DebugStart {
  const { name = '', namespace = '' } = object.metadata
  const container = `debugger-${suffix}`
  const added: Partial<EphemeralContainer> = {
    ...interactive(container, image),
    terminationMessagePolicy: 'File',
    securityContext: profile === 'restricted' ? RESTRICTED : TRACING,
    ...(target !== '' && { targetContainerName: target }),
  }
  const request: ActionRequest = {
    method: 'PATCH',
    path: objectPath(PODS, { namespace, name }, 'ephemeralcontainers'),
    type: 'application/strategic-merge-patch+json',
    body: { spec: { ephemeralContainers: [added] } },
  }
  return { request, namespace, pod: name, container }
}

/** Creates a pod on a node, with the network and the processes of the node, and its files at /host. */
export function debugOnNode(
  { object }: Target,
  { image, suffix }: Omit<DebugOptions, 'profile'>,
  namespace: string,
): DebugStart {
  const nodeName = object.metadata.name ?? ''
  const pod = `node-debugger-${nodeName.slice(0, MAX_NODE_LETTERS)}-${suffix}`
  const container = 'debugger'
  const volume = 'host-root'
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod, namespace, labels: { 'app.kubernetes.io/managed-by': 'hyperkube-console' } },
    spec: {
      containers: [
        {
          ...interactive(container, image),
          terminationMessagePolicy: 'File',
          volumeMounts: [{ name: volume, mountPath: '/host' }],
        },
      ],
      volumes: [{ name: volume, hostPath: { path: '/' } }],
      restartPolicy: 'Never',
      nodeName,
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      tolerations: [{ operator: 'Exists' }],
    },
  }
  const request: ActionRequest = { method: 'POST', path: listPath(PODS, namespace), body }
  return { request, namespace, pod, container }
}

/** Names have at most 253 letters. */
const MAX_NODE_LETTERS = 230

/** The containers whose processes a debug container can see: those that run. */
export function debugTargets({ status }: Pick<Pod, 'status'>): readonly string[] {
  return (status.containerStatuses ?? []).filter(({ state }) => state.running !== undefined).map(({ name }) => name)
}
