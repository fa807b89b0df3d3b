/** Manifests of pods of all kinds, bound to a named node, so that no scheduler and no controller is needed. */
import { IMAGE } from '../../integration/kubelet/containerd-bed.ts'

type Spec = Readonly<Record<string, unknown>>

/** A pod of the kill tests. `exec` uses its first container. */
export interface Kind {
  readonly spec: Spec
  /** The expected phase. Default: Running. */
  readonly phase?: 'Running' | 'Succeeded'
}

const FOREVER = 'trap "exit 0" TERM; while true; do sleep 1; done'

const container = (name: string, more: Spec = {}): Spec => ({
  name,
  image: IMAGE,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', FOREVER],
  ...more,
})

const once = (name: string, script = 'sleep 1'): Spec => container(name, { command: ['sh', '-c', script] })

const server = (name: string, port: number, more: Spec = {}): Spec =>
  container(name, {
    command: ['sh', '-c', `echo it works >/tmp/index.html; exec busybox httpd -f -p ${port} -h /tmp`],
    ...more,
  })

const often = { periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 10 }
const exec = (...command: string[]): Spec => ({ exec: { command }, ...often })
const mounted = (name: string, volume: Spec, more: Spec = {}): Spec => ({
  containers: [container('main', { volumeMounts: [{ name, mountPath: `/v/${name}`, ...more }] })],
  volumes: [{ name, ...volume }],
})

export interface Ground {
  /** Host ports that no other pod uses. */
  readonly ports: readonly number[]
  /** A folder of the machine that pods may have. */
  readonly hostPath: string
}

type Specs = Readonly<Record<string, Spec>>

const RUNNING: Specs = {
  plain: { containers: [container('main')] },
  two: { containers: [container('main'), container('other')] },
  guaranteed: {
    containers: [container('main', { resources: { limits: { cpu: '50m', memory: '32Mi' } } })],
  },
  burstable: { containers: [container('main', { resources: { requests: { cpu: '10m', memory: '8Mi' } } })] },
  init: { initContainers: [once('first'), once('second')], containers: [container('main')] },
  sidecar: {
    initContainers: [container('side', { restartPolicy: 'Always', startupProbe: exec('true') }), once('after')],
    containers: [container('main')],
  },
  'exec-probes': {
    containers: [container('main', { livenessProbe: exec('true'), readinessProbe: exec('true') })],
  },
  'http-probes': {
    containers: [
      server('main', 8080, {
        livenessProbe: { tcpSocket: { port: 8080 }, ...often },
        readinessProbe: { httpGet: { path: '/', port: 8080 }, ...often, successThreshold: 1 },
        startupProbe: { tcpSocket: { port: 8080 }, ...often },
      }),
    ],
  },
  'host-pid': { hostPID: true, containers: [container('main')] },
  'shared-pid': { shareProcessNamespace: true, containers: [container('main'), container('other')] },
  user: {
    securityContext: { runAsUser: 1000, runAsGroup: 1000, runAsNonRoot: true },
    containers: [container('main', { securityContext: { readOnlyRootFilesystem: true } })],
  },
  environment: {
    containers: [
      container('main', {
        env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
        envFrom: [{ configMapRef: { name: 'config' } }, { secretRef: { name: 'secret' } }],
      }),
    ],
  },
  hooks: {
    containers: [
      container('main', {
        lifecycle: {
          postStart: { exec: { command: ['true'] } },
          preStop: { exec: { command: ['sleep', '1'] } },
        },
      }),
    ],
  },
  'job-running': { restartPolicy: 'OnFailure', containers: [container('main')] },
  'job-never': { restartPolicy: 'Never', activeDeadlineSeconds: 86_400, containers: [container('main')] },
}

function withVolumes(hostPath: string): Specs {
  const token = { serviceAccountToken: { path: 'token', expirationSeconds: 600 } }
  const labels = { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } }
  return {
    'empty-dir': mounted('empty', { emptyDir: {} }),
    memory: mounted('memory', { emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } }),
    'sub-path': mounted('parts', { emptyDir: {} }, { subPath: 'one/part' }),
    'config-map': mounted('config', { configMap: { name: 'config' } }),
    'config-sub-path': mounted('config', { configMap: { name: 'config' } }, { subPath: 'key' }),
    secret: mounted('secret', { secret: { secretName: 'secret' } }),
    downward: mounted('about', labels),
    projected: mounted('all', {
      projected: { sources: [token, labels, { configMap: { name: 'config' } }, { secret: { name: 'secret' } }] },
    }),
    'host-path': mounted('host', { hostPath: { path: hostPath } }),
    'host-sub-path': mounted('host', { hostPath: { path: hostPath } }, { subPath: 'below' }),
    claim: mounted('data', { persistentVolumeClaim: { claimName: 'claim' } }),
    'fs-group': { ...mounted('data', { emptyDir: {} }), securityContext: { fsGroup: 2000 } },
  }
}

function withPorts([first = 0, second = 0, third = 0, fourth = 0]: readonly number[]): Specs {
  return {
    'host-network': { hostNetwork: true, containers: [server('main', first)] },
    'host-network-probed': {
      hostNetwork: true,
      containers: [server('main', second, { readinessProbe: { tcpSocket: { port: second }, ...often } })],
    },
    'host-port': {
      containers: [server('main', 8080, { ports: [{ containerPort: 8080, hostPort: third, hostIP: '127.0.0.1' }] })],
    },
    'host-port-two': {
      containers: [server('main', 8080, { ports: [{ containerPort: 8080, hostPort: fourth, hostIP: '127.0.0.1' }] })],
    },
  }
}

export function kinds({ ports, hostPath }: Ground): Record<string, Kind> {
  const all = Object.entries({ ...RUNNING, ...withVolumes(hostPath), ...withPorts(ports) })
  const done: Kind = { spec: { restartPolicy: 'Never', containers: [once('main', 'echo done')] }, phase: 'Succeeded' }
  return { ...Object.fromEntries(all.map(([name, spec]) => [name, { spec }])), 'job-done': done }
}

/** The objects that the pods refer to, by path. The volume will be bound to the claim. */
export function objectsFor(
  hostPath: string,
): Readonly<Record<'words' | 'secret' | 'claim' | 'volume', readonly [string, object]>> {
  const inNamespace = '/api/v1/namespaces/default'
  const size = { storage: '1Mi' }
  const shared = { accessModes: ['ReadWriteOnce'], storageClassName: '' }
  return {
    words: [`${inNamespace}/configmaps`, { metadata: { name: 'config' }, data: { key: 'value' } }],
    secret: [`${inNamespace}/secrets`, { metadata: { name: 'secret' }, stringData: { word: 'hidden' } }],
    claim: [
      `${inNamespace}/persistentvolumeclaims`,
      { metadata: { name: 'claim' }, spec: { ...shared, resources: { requests: size }, volumeName: 'volume' } },
    ],
    volume: [
      '/api/v1/persistentvolumes',
      { metadata: { name: 'volume' }, spec: { ...shared, capacity: size, hostPath: { path: hostPath } } },
    ],
  }
}

/** One that takes its time to end, and one that is gone at once. */
export const PASSING: readonly Spec[] = [
  { containers: [container('main')], terminationGracePeriodSeconds: 1 },
  {
    terminationGracePeriodSeconds: 4,
    containers: [container('main', { command: ['sh', '-c', 'trap "" TERM; while true; do sleep 1; done'] })],
  },
  {
    terminationGracePeriodSeconds: 6,
    containers: [container('main', { lifecycle: { preStop: { exec: { command: ['sleep', '3'] } } } })],
  },
  { initContainers: [once('first', 'sleep 3')], ...mounted('empty', { emptyDir: { medium: 'Memory' } }) },
  { ...mounted('parts', { emptyDir: {} }, { subPath: 'p' }), restartPolicy: 'Never' },
]
