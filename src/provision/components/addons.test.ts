import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseYamlAll } from '#lib/yaml/yaml.ts'

import { systemAddons } from '../addons/system-addons.ts'
import type { ClusterFile } from '../cluster.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { droppedDocuments } from './addons.ts'

const FILE = `
nodes:
  - { address: 10.0.0.1, user: root, hostname_override: one, role: [controlplane, etcd, worker] }
`

function read(more = ''): ClusterFile {
  const { cluster, faults } = readClusterFile(`${FILE}${more}`)
  assert.deepEqual(faults, [])
  assert.ok(cluster)
  return cluster
}

interface Thing {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: Readonly<Record<string, never>>
  readonly data?: Readonly<Record<string, string>>
}

function thingsOf(more = ''): Map<string, readonly Thing[]> {
  return new Map(
    systemAddons(read(more), { program: 'p1' }).map(({ name, manifest }) => [
      name,
      parseYamlAll(manifest) as unknown as Thing[],
    ]),
  )
}

function find(things: Map<string, readonly Thing[]>, addon: string, kind: string, name: string): Thing {
  const found = things.get(addon)?.find((thing) => thing.kind === kind && thing.metadata.name === name)
  assert.ok(found, `${addon} has no ${kind} ${name}`)
  return found
}

/** The single container of its pods. */
function containerOf({ spec }: Thing): { image: string; args: string[]; ports?: { containerPort: number }[] } {
  const { template } = spec as unknown as { template: { spec: { containers: [never] } } }
  return template.spec.containers[0]
}

const podOf = ({ spec }: Thing): Record<string, unknown> =>
  (spec as unknown as { template: { spec: Record<string, unknown> } }).template.spec

describe('system addons of a built cluster', () => {
  it("are RKE's, in its order", () => {
    assert.deepEqual([...thingsOf().keys()], ['rke-coredns-addon', 'rke-metrics-addon', 'rke-ingress-controller'])
    assert.deepEqual(
      [...thingsOf('dns: { nodelocal: { ip_address: 169.254.20.10 } }').keys()][1],
      'rke-nodelocal-addon',
    )
  })

  it('are omitted if cluster.yml disables them', () => {
    const off = 'dns: { provider: none }\nmonitoring: { provider: none }\ningress: { provider: none }\n'
    assert.deepEqual([...thingsOf(off).keys()], [])
  })

  it('use a container image that needs no registry', () => {
    for (const things of thingsOf('dns: { nodelocal: { ip_address: 169.254.20.10 } }').values())
      for (const thing of things.filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet'))
        assert.match(containerOf(thing).image, /^hyperkube\.local\/hyperkube:v/)
  })

  it('have the names in cluster.yml', () => {
    const things = thingsOf(`
services: { kubelet: { cluster_domain: corp.local, cluster_dns_server: 10.43.0.53 } }
dns:
  upstreamnameservers: [1.1.1.1]
  stubdomains: { a.example: [10.1.1.1, "10.1.1.2:5353"] }
  node_selector: { disk: ssd }
  linear_autoscaler_params: { min: 3, max: 7 }
`)
    const deployment = find(things, 'rke-coredns-addon', 'Deployment', 'coredns')
    assert.deepEqual(containerOf(deployment).args, [
      'dns',
      '--domain=corp.local',
      '--own-addresses=10.43.0.53',
      '--lameduck-period=5s',
      '--upstreams=1.1.1.1',
      '--stub-domains=a.example=10.1.1.1,a.example=10.1.1.2:5353',
    ])
    assert.deepEqual(podOf(deployment)['nodeSelector'], { disk: 'ssd' })
    // Otherwise every `up` would undo the scaling of the autoscaler.
    assert.equal(deployment.spec?.['replicas'], undefined)
    assert.equal(find(things, 'rke-coredns-addon', 'Service', 'kube-dns').spec?.['clusterIP'], '10.43.0.53')
    const { data } = find(things, 'rke-coredns-addon', 'ConfigMap', 'coredns-autoscaler')
    assert.deepEqual(JSON.parse(data?.['linear'] ?? ''), {
      coresPerReplica: 128,
      nodesPerReplica: 4,
      min: 3,
      max: 7,
      preventSinglePointFailure: true,
    })
  })

  it('use the images in cluster.yml', () => {
    const things = thingsOf(`
system_images: { coredns: registry.example/coredns:1, metrics_server: registry.example/metrics:2 }
dns: { reversecidrs: [10.0.0.0/8] }
`)
    const coredns = containerOf(find(things, 'rke-coredns-addon', 'Deployment', 'coredns'))
    assert.deepEqual([coredns.image, ...coredns.args], ['registry.example/coredns:1', '-conf', '/etc/coredns/Corefile'])
    const { data } = find(things, 'rke-coredns-addon', 'ConfigMap', 'coredns')
    assert.match(data?.['Corefile'] ?? '', /kubernetes cluster\.local 10\.0\.0\.0\/8 \{/)
    const metrics = containerOf(find(things, 'rke-metrics-addon', 'Deployment', 'metrics-server'))
    assert.deepEqual([metrics.image, metrics.args[0]], ['registry.example/metrics:2', '--cert-dir=/tmp'])
  })

  it('open host ports if the ingress mode requires that', () => {
    const ports = (mode: string): unknown => {
      const file = `ingress: { network_mode: ${mode}, http_port: 8080, https_port: 8443, extra_args: { v: "4" } }`
      const set = find(thingsOf(file), 'rke-ingress-controller', 'DaemonSet', 'nginx-ingress-controller')
      const { args, ports: own } = containerOf(set)
      assert.ok(args.includes('--v=4'))
      return [
        own?.map(({ containerPort }) => containerPort),
        args.includes('--http-port=8080'),
        podOf(set)['hostNetwork'],
      ]
    }
    assert.deepEqual(ports('hostPort'), [[8080, 8443], true, undefined])
    assert.deepEqual(ports('hostNetwork'), [[8080, 8443], true, true])
    assert.deepEqual(ports('none'), [[80, 443], false, undefined])
  })

  it('are deployed again if the program changes', () => {
    const [one] = systemAddons(read(), { program: 'p1' })
    const [other] = systemAddons(read(), { program: 'p2' })
    assert.notEqual(one?.manifest, other?.manifest)
  })
})

describe('droppedDocuments() of an addon', () => {
  it('lists workloads before their dependencies, in reverse order', () => {
    const document = (kind: string, name: string): string =>
      `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n  namespace: x\nspec: {a: 1}\n`
    const before = ['Namespace', 'ServiceAccount', 'Deployment', 'DaemonSet', 'Service'].map((kind) =>
      document(kind, 'a'),
    )
    const kinds = droppedDocuments(before.join('---\n'), before[4] ?? '').map((part) =>
      (parseYamlAll(part) as unknown as Thing[]).map(({ kind, spec }) => [kind, spec]),
    )
    assert.deepEqual(kinds, [
      [
        ['DaemonSet', undefined],
        ['Deployment', undefined],
      ],
      [
        ['ServiceAccount', undefined],
        ['Namespace', undefined],
      ],
    ])
  })

  it('is empty if the new addon contains every document', () => {
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n'
    assert.deepEqual(droppedDocuments(text, text), [])
    assert.deepEqual(droppedDocuments('', text), [])
  })
})
