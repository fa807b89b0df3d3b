/** A typical pod for benchmarks: created by a Deployment, running, with owners, probes and status. */
import { schemaFor } from '#apis/schemas.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

export const podKind: GroupVersionKind = { group: '', version: 'v1', kind: 'Pod' }
export const podListKind: GroupVersionKind = { group: '', version: 'v1', kind: 'PodList' }

const time = '2026-03-04T05:06:07Z'
const condition = (type: string): JsonObject => ({ type, status: 'True', lastTransitionTime: time })
const probe = (path: string): JsonObject => ({
  httpGet: { path, port: 'http', scheme: 'HTTP' },
  initialDelaySeconds: 5,
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
})

/** The pod with that number, canonical. */
export function samplePod(index: number): JsonObject {
  const name = `web-7c5ddbdf54-${index.toString(36).padStart(5, '0')}`
  return canonical(podKind, {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: metadataOf(name, index),
    spec: specOf(index),
    status: statusOf(index),
  })
}

export function samplePodList(length: number): JsonObject {
  const items = Array.from({ length }, (_, index) => {
    const { kind: _kind, apiVersion: _apiVersion, ...item } = samplePod(index)
    return item
  })
  return canonical(podListKind, { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items })
}

function canonical(gvk: GroupVersionKind, object: JsonObject): JsonObject {
  const schema = schemaFor(gvk)
  if (schema === undefined) throw new Error(`No schema for "${gvk.kind}"`)
  return decodeValue(schema, object, 'Ignore', { offences: [] }) as JsonObject
}

function metadataOf(name: string, index: number): JsonObject {
  const uid = `5f0c6f6e-1b1e-4a43-9a57-${index.toString(16).padStart(12, '0')}`
  return {
    name,
    generateName: 'web-7c5ddbdf54-',
    namespace: 'shop',
    uid,
    resourceVersion: String(100_000 + index),
    generation: 1,
    creationTimestamp: time,
    labels: { app: 'web', 'app.kubernetes.io/part-of': 'shop', 'pod-template-hash': '7c5ddbdf54', tier: 'frontend' },
    annotations: { 'prometheus.io/port': '9090', 'prometheus.io/scrape': 'true' },
    ownerReferences: [
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        name: 'web-7c5ddbdf54',
        uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  }
}

function specOf(index: number): JsonObject {
  return {
    volumes: [
      { name: 'config', configMap: { name: 'web', defaultMode: 420 } },
      { name: 'cache', emptyDir: { sizeLimit: '64Mi' } },
    ],
    containers: [
      {
        name: 'web',
        image: 'example.com/shop/web:v1.2.3',
        ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
        env: [
          { name: 'LOG_LEVEL', value: 'info' },
          { name: 'POD_IP', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } } },
        ],
        resources: { limits: { cpu: '500m', memory: '256Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/web', readOnly: true },
          { name: 'cache', mountPath: '/var/cache' },
        ],
        livenessProbe: probe('/live'),
        readinessProbe: probe('/ready'),
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'IfNotPresent',
        securityContext: { allowPrivilegeEscalation: false, runAsNonRoot: true },
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    serviceAccountName: 'web',
    serviceAccount: 'web',
    nodeName: `node-${index % 50}`,
    schedulerName: 'default-scheduler',
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ],
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
  }
}

function statusOf(index: number): JsonObject {
  const podIP = `10.1.${index >> 8}.${index & 255}`
  return {
    phase: 'Running',
    conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
    hostIP: '10.0.0.7',
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: time,
    containerStatuses: [
      {
        name: 'web',
        state: { running: { startedAt: time } },
        ready: true,
        restartCount: 0,
        image: 'example.com/shop/web:v1.2.3',
        imageID: 'example.com/shop/web@sha256:7a1b0c7e0f3d4e5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c',
        containerID: 'containerd://0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0',
        started: true,
      },
    ],
    qosClass: 'Burstable',
  }
}
