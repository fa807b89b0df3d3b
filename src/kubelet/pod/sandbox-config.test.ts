import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod, PodSpec } from '#apis/core/v1.ts'

import { dnsOf, parseResolvConf } from '../pods/dns.ts'
import {
  cgroupParent,
  containerResources,
  cpuQuota,
  cpuShares,
  oomScoreAdj,
  sandboxResources,
} from './linux-resources.ts'
import { sandboxConfig } from './sandbox-config.ts'

const UID = '0f3a1b2c-0000-4000-8000-000000000001'
const GI = 1024 ** 3

function podOf(spec: Partial<PodSpec> = {}, status: Pod['status'] = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'default', uid: UID, labels: { app: 'web' }, annotations: { note: 'x' } },
    spec: { containers: [{ name: 'c', image: 'nginx:1', resources: {} }], ...spec },
    status,
  }
}

const FACTS = {
  cgroupDriver: 'cgroupfs',
  podLogsDir: '/var/log/pods',
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  resolvConf: '/etc/resolv.conf',
  addresses: ['10.0.0.1'],
} as const

const NO_DNS = { servers: [], searches: [], options: [] }

const configOf = (pod: Pod): ReturnType<typeof sandboxConfig> =>
  sandboxConfig({ pod, facts: FACTS, dns: NO_DNS, attempt: 0, seen: '2026-01-01T00:00:00Z' })

test('the sandbox config contains the metadata, log directory and cgroup parent of the pod', () => {
  const config = configOf(podOf({}, { qosClass: 'BestEffort' }))
  assert.deepEqual(config.metadata, { name: 'web', uid: UID, namespace: 'default', attempt: 0 })
  assert.equal(config.hostname, 'web')
  assert.equal(config.logDirectory, `/var/log/pods/default_web_${UID}`)
  assert.deepEqual(Object.fromEntries(config.labels ?? []), {
    app: 'web',
    'io.kubernetes.pod.name': 'web',
    'io.kubernetes.pod.namespace': 'default',
    'io.kubernetes.pod.uid': UID,
  })
  assert.deepEqual(Object.fromEntries(config.annotations ?? []), {
    note: 'x',
    'kubernetes.io/config.seen': '2026-01-01T00:00:00Z',
    'kubernetes.io/config.source': 'api',
  })
  assert.equal(config.linux?.cgroupParent, `/kubepods/besteffort/pod${UID}`)
  assert.deepEqual(config.linux?.securityContext?.seccomp, { profileType: 0 })
})

test('containers share the network and IPC namespaces of the pod, and its PID namespace only with shareProcessNamespace', () => {
  const rows: [Partial<PodSpec>, number, number, number][] = [
    [{}, 0, 1, 0],
    [{ hostNetwork: true, hostPID: true, hostIPC: true }, 2, 2, 2],
    [{ shareProcessNamespace: true }, 0, 0, 0],
  ]
  for (const [spec, network, pid, ipc] of rows) {
    const options = configOf(podOf(spec)).linux?.securityContext?.namespaceOptions
    assert.deepEqual([options?.network, options?.pid, options?.ipc], [network, pid, ipc])
    assert.deepEqual(options?.usernsOptions, { mode: 2 })
  }
})

test('the sandbox of a pod with hostNetwork has no hostname', () => {
  assert.equal(configOf(podOf({ hostNetwork: true })).hostname, '')
})

test('a long hostname of a pod is truncated, and a long FQDN rejected', () => {
  assert.equal(configOf(podOf({ hostname: `${'a'.repeat(62)}-b` })).hostname, 'a'.repeat(62))
  assert.equal(
    configOf(podOf({ subdomain: 'sub', setHostnameAsFQDN: true })).hostname,
    'web.sub.default.svc.cluster.local',
  )
  const long = podOf({ hostname: 'h'.repeat(50), subdomain: 'sub', setHostnameAsFQDN: true })
  assert.throws(
    () => configOf(long),
    /FQDN h+\.sub\.default\.svc\.cluster\.local is too long \(64 characters is the max/,
  )
})

test('the sandbox config maps every port of the pod once', () => {
  const ports = [
    { containerPort: 80, hostPort: 8080 },
    { containerPort: 80, hostPort: 8080 },
    { containerPort: 53, protocol: 'UDP', hostIP: '127.0.0.1' },
  ]
  assert.deepEqual(configOf(podOf({ containers: [{ name: 'c', resources: {}, ports }] })).portMappings, [
    { protocol: 0, containerPort: 80, hostPort: 8080, hostIp: '' },
    { protocol: 1, containerPort: 53, hostPort: 0, hostIp: '127.0.0.1' },
  ])
})

test('the supplemental groups of a sandbox begin with fsGroup', () => {
  const securityContext = { runAsUser: 0, runAsGroup: 3, fsGroup: 2000, supplementalGroups: [7, 8] }
  const config = configOf(
    podOf({ securityContext, containers: [{ name: 'c', resources: {}, securityContext: { privileged: true } }] }),
  )
  const { runAsUser, runAsGroup, supplementalGroups, privileged } = config.linux?.securityContext ?? {}
  assert.deepEqual(
    { runAsUser, runAsGroup, supplementalGroups, privileged },
    { runAsUser: { value: 0 }, runAsGroup: { value: 3 }, supplementalGroups: [2000, 7, 8], privileged: true },
  )
})

test('cgroupParent() depends on the QoS class and the cgroup driver', () => {
  const escaped = UID.replaceAll('-', '_')
  const guaranteed = podOf({}, { qosClass: 'Guaranteed' })
  const burstable = podOf({}, { qosClass: 'Burstable' })
  assert.equal(cgroupParent(guaranteed, { cgroupDriver: 'cgroupfs' }), `/kubepods/pod${UID}`)
  assert.equal(cgroupParent(burstable, { cgroupDriver: 'cgroupfs' }), `/kubepods/burstable/pod${UID}`)
  assert.equal(cgroupParent(guaranteed, { cgroupDriver: 'cgroupfs', cgroupRoot: '/own' }), `/own/kubepods/pod${UID}`)
  assert.equal(
    cgroupParent(burstable, { cgroupDriver: 'systemd' }),
    `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${escaped}.slice`,
  )
})

test('cpuShares() and cpuQuota() convert milli-CPUs within the limits of the kernel', () => {
  assert.deepEqual([0, 50, 100, 150, 1000, 1_000_000].map(cpuShares), [2, 51, 102, 153, 1024, 262_144])
  assert.deepEqual(
    [0, 5, 50, 200, 300].map((milli) => cpuQuota(milli)),
    [0, 1000, 5000, 20_000, 30_000],
  )
  assert.equal(cpuQuota(500, 10_000), 5000)
})

test('CPU quotas of containers use the configured CFS period, or are off', () => {
  const container = { name: 'c', resources: { limits: { cpu: '500m' } } }
  const pod = podOf({ containers: [container] })
  const inPeriod = containerResources(pod, container, { memoryBytes: GI, cfsPeriodUs: 20_000 })
  assert.deepEqual([inPeriod.cpuPeriod, inPeriod.cpuQuota], [20_000, 10_000])
  const free = containerResources(pod, container, { memoryBytes: GI, cfsPeriodUs: 0 })
  assert.deepEqual([free.cpuPeriod, free.cpuQuota, free.cpuShares], [undefined, undefined, 512])
  assert.equal(sandboxResources(pod, { cfsPeriodUs: 0 }).cpuQuota, undefined)
})

test('containerResources() converts requests and limits to kernel values', () => {
  const resources = { requests: { cpu: '100m', memory: '32Mi' }, limits: { cpu: '200m', memory: '64Mi' } }
  const container = { name: 'c', resources }
  const pod = podOf({ containers: [container] }, { qosClass: 'Burstable' })
  assert.deepEqual(containerResources(pod, container, { memoryBytes: 24 * GI }), {
    cpuPeriod: 100_000,
    cpuQuota: 20_000,
    cpuShares: 102,
    memoryLimitInBytes: 64 * 1024 ** 2,
    memorySwapLimitInBytes: 64 * 1024 ** 2,
    oomScoreAdj: 999,
    hugepageLimits: [
      { pageSize: '2MB', limit: 0 },
      { pageSize: '1GB', limit: 0 },
    ],
  })
})

test('container resources set memory.oom.group where cgroup v2 supports it', () => {
  const container = { name: 'c', resources: {} }
  const pod = podOf({ containers: [container] })
  const whole = containerResources(pod, container, { memoryBytes: GI, killsContainersWhole: true })
  assert.deepEqual(whole.unified, new Map([['memory.oom.group', '1']]))
  assert.equal(containerResources(pod, container, { memoryBytes: GI }).unified, undefined)
})

test('container resources disable swap, with or without a memory limit', () => {
  const container = { name: 'c', resources: {} }
  const pod = podOf({ containers: [container] })
  const facts = { memoryBytes: GI, forbidsSwap: true }
  assert.deepEqual(containerResources(pod, container, facts).unified, new Map([['memory.swap.max', '0']]))
  assert.deepEqual(
    containerResources(pod, container, { ...facts, killsContainersWhole: true }).unified,
    new Map([
      ['memory.oom.group', '1'],
      ['memory.swap.max', '0'],
    ]),
  )
})

test('pod-level huge page limits apply to containers without huge page limits', () => {
  const silent = { name: 'silent', resources: {} }
  const asking = { name: 'asking', resources: { limits: { 'hugepages-2Mi': '2Mi' } } }
  const pod = podOf({ containers: [silent, asking], resources: { limits: { 'hugepages-2Mi': '8Mi' } } })
  const limits = [silent, asking].map((container) =>
    containerResources(pod, container, { memoryBytes: GI }).hugepageLimits?.filter(
      ({ pageSize }) => pageSize === '2MB',
    ),
  )
  assert.deepEqual(limits, [[{ pageSize: '2MB', limit: 8 << 20 }], [{ pageSize: '2MB', limit: 2 << 20 }]])
})

test('oom_score_adj of containers follows the QoS class', () => {
  const burstable = podOf({}, { qosClass: 'Burstable' })
  const asking = (memory: string): { name: string; resources: object } => ({
    name: 'c',
    resources: { requests: { memory } },
  })
  assert.equal(oomScoreAdj(podOf({}, { qosClass: 'Guaranteed' }), asking('1Gi'), 4 * GI), -997)
  assert.equal(oomScoreAdj(podOf({}, { qosClass: 'BestEffort' }), asking('0'), 4 * GI), 1000)
  assert.equal(oomScoreAdj(burstable, asking('1Gi'), 4 * GI), 750)
  assert.equal(oomScoreAdj(burstable, asking('4Gi'), 4 * GI), 3)
  assert.equal(oomScoreAdj(podOf({ priority: 2_000_001_000 }, { qosClass: 'Burstable' }), asking('1Gi'), 4 * GI), -997)
})

test('the DNS config of a sandbox follows the dnsPolicy of the pod', () => {
  const ofNode = parseResolvConf('# mine\nnameserver 1.1.1.1\nsearch a.example. b.example\noptions timeout:2 rotate\n')
  assert.deepEqual(ofNode, {
    servers: ['1.1.1.1'],
    searches: ['a.example', 'b.example'],
    options: ['timeout:2', 'rotate'],
  })
  const clusterFirst = dnsOf(podOf({ dnsPolicy: 'ClusterFirst' }), FACTS, ofNode).config
  assert.deepEqual(clusterFirst, {
    servers: ['10.96.0.10'],
    searches: ['default.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'a.example', 'b.example'],
    options: ['ndots:5'],
  })
  assert.deepEqual(dnsOf(podOf({ dnsPolicy: 'ClusterFirst', hostNetwork: true }), FACTS, ofNode).config, ofNode)
  const own = { nameservers: ['9.9.9.9'], searches: ['x'], options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }] }
  assert.deepEqual(dnsOf(podOf({ dnsPolicy: 'None', dnsConfig: own }), FACTS, ofNode).config, {
    servers: ['9.9.9.9'],
    searches: ['x'],
    options: ['ndots:2', 'edns0'],
  })
  assert.deepEqual(dnsOf(podOf({ dnsPolicy: 'Default' }), { ...FACTS, resolvConf: '' }, NO_DNS).config, {
    servers: ['127.0.0.1'],
    searches: ['.'],
    options: [],
  })
})

test('the DNS config of a sandbox is that of the node if there is no cluster DNS, with a warning event', () => {
  const ofNode = { servers: ['1.1.1.1'], searches: [], options: [] }
  const facts = { ...FACTS, clusterDns: [] }
  for (const dnsPolicy of ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default']) {
    const { config, events } = dnsOf(podOf({ dnsPolicy }), facts, ofNode)
    assert.deepEqual(config, ofNode)
    const reasons = dnsPolicy === 'Default' ? [] : ['MissingClusterDNS']
    assert.deepEqual(
      events.map(({ reason }) => reason),
      reasons,
    )
  }
})

test('the DNS config of a sandbox omits excess name servers, with a warning event', () => {
  const dnsConfig = { nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3', '4.4.4.4'] }
  const { config, events } = dnsOf(podOf({ dnsPolicy: 'None', dnsConfig }), FACTS, NO_DNS)
  assert.equal(config.servers.length, 3)
  assert.deepEqual(
    events.map(({ reason, message }) => [reason, message]),
    [
      [
        'DNSConfigForming',
        'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3',
      ],
    ],
  )
})
