/**
 * Compares the names of ReplicaSets and ControllerRevisions with those of upstream's kube-controller-manager: `node
 * test/upstream/hashes.ts`. Upstream's manager runs on our server with varied pod templates, and its names must equal
 * those that we compute.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { dataText, revisionData } from '#controllers/workloads/revisions.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { revisionHash, templateHash } from '#model/template-hash.ts'

import { startComponents } from './components.ts'
import { end } from './kube-apiserver.ts'
import { ask, startOurs, writeKubeconfig } from './ours.ts'

const WAIT_MS = 60_000
const labels = { app: 'web' }

/** Added to a container that has a name and an image, and to the pod around it. */
const CASES: readonly (readonly [name: string, container: object, pod?: object])[] = [
  ['plain', {}],
  ['resources', { resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '2', memory: '100Mi' } } }],
  ['amounts', { resources: { requests: { cpu: '1500m', memory: '1G' }, limits: { 'example.com/x': '4000' } } }],
  ['large', { resources: { limits: { memory: '4Ei' } } }],
  ['exponent', { resources: { limits: { memory: '1e3' } } }],
  ['small', { resources: { limits: { memory: '3Gi', cpu: '100u' } } }],
  [
    'ports',
    {
      ports: [
        { name: 'http', containerPort: 80 },
        { containerPort: 53, protocol: 'UDP', hostPort: 53 },
      ],
    },
  ],
  [
    'probes',
    {
      livenessProbe: { httpGet: { path: '/', port: 'http', httpHeaders: [{ name: 'a', value: 'b' }] } },
      readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 3 },
      startupProbe: { grpc: { port: 9, service: 's' } },
      lifecycle: { preStop: { exec: { command: ['a', 'b <c> & "d"'] } } },
    },
  ],
  [
    'env',
    {
      env: [
        { name: 'A', value: '<&>' },
        { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'C', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
        { name: 'D', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
      ],
      envFrom: [{ configMapRef: { name: 'c' } }],
    },
  ],
  [
    'security',
    {
      securityContext: {
        runAsUser: 1,
        capabilities: { add: ['NET_ADMIN'] },
        seccompProfile: { type: 'RuntimeDefault' },
      },
    },
    { securityContext: { fsGroup: 5, sysctls: [{ name: 'a.b', value: '1' }] }, hostNetwork: false },
  ],
  [
    'volumes',
    { volumeMounts: [{ name: 'a', mountPath: '/a', readOnly: true }] },
    {
      volumes: [
        { name: 'a', emptyDir: { sizeLimit: '1Gi' } },
        { name: 'b', configMap: { name: 'c', items: [{ key: 'k', path: 'p' }] } },
        { name: 'c', projected: { sources: [{ serviceAccountToken: { path: 't' } }, { secret: { name: 's' } }] } },
        { name: 'd', persistentVolumeClaim: { claimName: 'x' } },
        { name: 'e', csi: { driver: 'd', volumeAttributes: { b: '2', a: '1' } } },
        { name: 'f', nfs: { server: 's', path: '/' } },
      ],
    },
  ],
  [
    'placement',
    {},
    {
      nodeSelector: { z: '1', a: '2' },
      tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: labels } } },
          ],
        },
      },
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      dnsConfig: { nameservers: ['1.1.1.1'], options: [{ name: 'ndots', value: '2' }] },
      hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }],
      initContainers: [{ name: 'i', image: 'i', restartPolicy: 'Always', command: ['x'] }],
      serviceAccountName: 'default',
      priorityClassName: '',
    },
  ],
]

interface Made {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly template: PodTemplateSpec }
}

async function compare(folder: string): Promise<number> {
  const server = await startOurs(folder)
  const call = async (path: string, body?: object): Promise<{ items: Made[] } & Made> => {
    const answer = await ask(server, {
      path: `/apis/apps/v1/namespaces/default/${path}`,
      ...(body && { method: 'POST', body }),
    })
    if (answer.status >= 400) throw new Error(JSON.stringify(answer.body))
    return answer.body as { items: Made[] } & Made
  }
  const programs = await startComponents(folder, await writeKubeconfig(join(folder, 'kubeconfig'), server))
  try {
    const expected = new Map<string, string>()
    for (const [name, container, pod = {}] of CASES) {
      const containers = [{ name: 'c', image: 'img:1', ...container }]
      const template = { metadata: { labels: { ...labels, case: name } }, spec: { containers, ...pod } }
      const spec = { replicas: 0, selector: { matchLabels: { case: name } }, template }
      const stored = (await call('deployments', { metadata: { name }, spec })).spec.template
      expected.set(`${name}-${templateHash(stored)}`, `ReplicaSet of ${name}`)
      await call('statefulsets', { metadata: { name }, spec: { ...spec, serviceName: 's' } })
      expected.set(`${name}-${revisionHash(dataText(revisionData(stored)), 0)}`, `StatefulSet revision of ${name}`)
    }
    return await wait(expected, async () => {
      const lists = await Promise.all([call('replicasets'), call('controllerrevisions')])
      return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.name))
    })
  } finally {
    await Promise.all([...programs.values()].map((child) => end(child, 'SIGTERM')))
    await server.stop()
  }
}

async function wait(expected: ReadonlyMap<string, string>, list: () => Promise<string[]>): Promise<number> {
  const deadline = realClock.now() + WAIT_MS
  let names = await list()
  while (names.length < expected.size && realClock.now() < deadline) {
    await sleep(realClock, 500)
    names = await list()
  }
  const lost = [...expected].filter(([name]) => !names.includes(name))
  for (const [name, what] of lost) process.stdout.write(`✖ ${what}: ${name} is not among ${names.join(' ')}\n`)
  process.stdout.write(`${expected.size - lost.length} passed, ${lost.length} failed\n`)
  return lost.length === 0 ? 0 : 1
}

const folder = await mkdtemp(join(tmpdir(), 'hyperkube-hashes-'))
try {
  process.exitCode = await compare(folder)
} finally {
  await rm(folder, { recursive: true, force: true })
}
