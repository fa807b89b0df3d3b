import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ResourceQuota } from '#apis/core/v1.ts'
import { refusal, refusalStatus, run, type SampleWrite, sampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { conflictError } from '#meta/status-errors.ts'

import type { AdmissionPlugin } from '../plugin.ts'
import type { LimitedResource } from './check.ts'
import { createResourceQuota } from './resource-quota.ts'

const clock = createVirtualClock()

/** A quota whose status the controller has set. */
function quota(hard: Record<string, string>, used: Record<string, string> = {}, spec: object = {}): ResourceQuota {
  const zero = Object.fromEntries(Object.keys(hard).map((name) => [name, '0']))
  return {
    metadata: { name: 'q', namespace: 'ns' },
    spec: { hard, ...spec },
    status: { hard, used: { ...zero, ...used } },
  }
}

interface Stage {
  readonly plugin: AdmissionPlugin
  readonly quotas: ResourceQuota[]
  /** The number of stored updates. */
  writes: number
  /** The number of conflicts to simulate. */
  conflicts: number
}

function stage(quotas: ResourceQuota[], limitedResources: readonly LimitedResource[] = []): Stage {
  const state: Stage = {
    quotas,
    writes: 0,
    conflicts: 0,
    plugin: createResourceQuota({
      clock,
      isEnabled: () => true,
      limitedResources,
      writer: {
        async updateStatus(next) {
          await Promise.resolve()
          if (state.conflicts-- > 0) throw conflictError({ group: '', resource: 'resourcequotas' }, 'q', 'modified')
          state.conflicts = 0
          state.writes++
          const at = quotas.findIndex(({ metadata }) => metadata.name === next.metadata.name)
          if (at >= 0) quotas[at] = next
        },
      },
    }),
  }
  return state
}

function admit(on: Stage, write: SampleWrite): Promise<string | undefined> {
  return refusal(on.plugin, { ...write, world: { ...write.world, resourcequotas: on.quotas } })
}

function used(on: Stage): Record<string, string> | undefined {
  return on.quotas[0]?.status.used
}

const secret = { resource: 'secrets', object: { metadata: { name: 'sec' } } }

function pod(resources: object = {}, spec: object = {}, rest: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources }], ...spec }, ...rest }
}

describe('ResourceQuota', () => {
  it('counts objects under the short name and under count/<resource>', async () => {
    const on = stage([quota({ 'count/secrets': '2', secrets: '2', 'count/deployments.apps': '1' })])
    assert.equal(await admit(on, secret), undefined)
    assert.deepEqual(used(on), { 'count/deployments.apps': '0', 'count/secrets': '1', secrets: '1' })
    assert.equal(await admit(on, { resource: 'deployments.apps', object: { metadata: { name: 'd' } } }), undefined)
    assert.equal(used(on)?.['count/deployments.apps'], '1')
    assert.equal(
      await admit(on, { resource: 'deployments.apps', object: { metadata: { name: 'd' } } }),
      'deployments.apps "d" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: count/deployments.apps=1',
    )
  })

  it("rejects an object that exceeds the quota with upstream's error text", async () => {
    const on = stage([quota({ 'count/secrets': '0' })])
    const status = await refusalStatus(on.plugin, { ...secret, world: { resourcequotas: on.quotas } })
    assert.equal(status?.code, 403)
    assert.equal(
      status?.message,
      'secrets "sec" is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=0, limited: count/secrets=0',
    )
    assert.equal(on.writes, 0)
  })

  it('writes no quota status for dry runs, uncounted kinds and updates', async () => {
    const on = stage([quota({ 'count/secrets': '1' })])
    assert.equal(await admit(on, { ...secret, dryRun: true }), undefined)
    assert.equal(await admit(on, { ...secret, oldObject: secret.object }), undefined)
    assert.equal(await admit(on, { resource: 'configmaps', object: { metadata: { name: 'm' } } }), undefined)
    assert.equal(await admit(on, { resource: 'events', object: { metadata: { name: 'e' } } }), undefined)
    assert.equal(on.writes, 0)
    const full = stage([quota({ 'count/secrets': '0' })])
    assert.match((await admit(full, { ...secret, dryRun: true })) ?? '', /exceeded quota/)
  })

  it('ignores a quota whose status the controller has not yet filled', async () => {
    const fresh = quota({ secrets: '5' })
    assert.equal(await admit(stage([{ ...fresh, status: {} }]), secret), undefined)
    assert.equal(
      await admit(stage([{ ...fresh, status: { hard: { secrets: '5' } } }]), secret),
      'secrets "sec" is forbidden: status unknown for quota: q, resources: secrets',
    )
  })

  it('returns undefined instead of a promise for kinds that no quota counts', () => {
    const { plugin } = stage([])
    const ask = (write: SampleWrite): unknown => plugin.validate!(sampleWrite(write).attributes)
    assert.equal(ask({ ...secret, oldObject: secret.object }), undefined)
    assert.equal(ask({ resource: 'pods', subresource: 'status', object: pod(), oldObject: pod() }), undefined)
    assert.equal(ask({ resource: 'pods', object: pod(), oldObject: pod() }), undefined)
    assert.equal(ask({ resource: 'nodes', object: { metadata: { name: 'n' } } }), undefined)
    assert.equal(ask({ resource: 'namespaces', object: { metadata: { name: 'n' } } }), undefined)
  })
})

describe('ResourceQuota with concurrent writes', () => {
  it('combines the usage of waiting writes in one status update', async () => {
    const on = stage([quota({ secrets: '20' })])
    const writes = Array.from({ length: 30 }, () => admit(on, secret))
    const answers = await Promise.all(writes)
    assert.equal(answers.filter((message) => message === undefined).length, 20)
    assert.equal(used(on)?.['secrets'], '20')
    assert.ok(on.writes < 5, `${on.writes} writes`)
  })

  it('retries a few times after conflicts', async () => {
    const on = stage([quota({ secrets: '5' })])
    on.conflicts = 3
    assert.equal(await admit(on, secret), undefined)
    assert.equal(used(on)?.['secrets'], '1')
    on.conflicts = 100
    assert.match((await admit(on, secret)) ?? '', /Operation cannot be fulfilled on resourcequotas "q"/)
    on.conflicts = 0
    assert.equal(await admit(on, secret), undefined)
  })

  it('admits a write if the quota was deleted meanwhile', async () => {
    const on = stage([quota({ secrets: '5' })])
    on.conflicts = 1
    const { attributes } = sampleWrite({ ...secret, world: { resourcequotas: on.quotas } })
    const written = run(on.plugin, attributes)
    on.quotas.length = 0
    await written
    assert.equal(on.writes, 0)
  })

  it('times out after ten seconds', async () => {
    const never = createResourceQuota({
      clock,
      isEnabled: () => true,
      writer: { updateStatus: () => new Promise(() => undefined) },
    })
    const failed = refusal(never, { ...secret, world: { resourcequotas: [quota({ secrets: '5' })] } })
    await clock.advance(11_000)
    assert.equal(await failed, 'Internal error occurred: resource quota evaluation timed out')
  })
})

describe('ResourceQuota for pods', () => {
  const resources = {
    requests: {
      cpu: '500m',
      memory: '1Gi',
      'ephemeral-storage': '1Gi',
      'hugepages-2Mi': '4Mi',
      'example.com/gpu': '2',
    },
    limits: { cpu: '1', memory: '2Gi', 'ephemeral-storage': '3Gi' },
  }
  const names =
    'pods count/pods cpu memory requests.cpu requests.memory requests.ephemeral-storage limits.cpu limits.memory ' +
    'limits.ephemeral-storage hugepages-2Mi requests.hugepages-2Mi requests.example.com/gpu ephemeral-storage'
  const everything = Object.fromEntries(names.split(' ').map((name) => [name, '100Gi']))

  it('counts requests and limits of containers', async () => {
    const on = stage([quota(everything)])
    assert.equal(await admit(on, { resource: 'pods', object: pod(resources) }), undefined)
    assert.deepEqual(used(on), {
      'count/pods': '1',
      cpu: '500m',
      'ephemeral-storage': '1Gi',
      'hugepages-2Mi': '4Mi',
      'limits.cpu': '1',
      'limits.ephemeral-storage': '3Gi',
      'limits.memory': '2Gi',
      memory: '1Gi',
      pods: '1',
      'requests.cpu': '500m',
      'requests.ephemeral-storage': '1Gi',
      'requests.example.com/gpu': '2',
      'requests.hugepages-2Mi': '4Mi',
      'requests.memory': '1Gi',
    })
  })

  it('rejects a pod without requests or limits of a resource that the quota limits', async () => {
    const on = stage([quota({ 'limits.cpu': '2', 'requests.memory': '2Gi' })])
    const object = pod({}, { initContainers: [{ name: 'a', resources: { limits: { cpu: '1' } } }] })
    assert.equal(
      await admit(on, { resource: 'pods', object }),
      'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: c; requests.memory for: a,c',
    )
    const whole = pod({}, { resources: { limits: { cpu: '1' }, requests: { memory: '1Gi' } } })
    assert.equal(await admit(on, { resource: 'pods', object: whole }), undefined)
    assert.deepEqual(used(on), { 'limits.cpu': '1', 'requests.memory': '1Gi' })
    assert.equal(
      await admit(stage([quota({ 'requests.ephemeral-storage': '1Gi' })]), { resource: 'pods', object: pod() }),
      undefined,
    )
  })

  it('names only the exceeded resources in its error', async () => {
    const on = stage([
      quota({ 'requests.cpu': '1', pods: '9', memory: '1Gi' }, { 'requests.cpu': '900m', memory: '1Gi' }),
    ])
    const object = pod({ requests: { cpu: '200m', memory: '1Mi' } })
    assert.equal(
      await admit(on, { resource: 'pods', object }),
      'pods "p" is forbidden: exceeded quota: q, requested: memory=1Mi,requests.cpu=200m, used: memory=1Gi,requests.cpu=900m, limited: memory=1Gi,requests.cpu=1',
    )
  })

  it('charges a resize for its increase and refunds nothing', async () => {
    const on = stage([quota({ 'requests.cpu': '3' }, { 'requests.cpu': '1' })])
    const sized = (cpu: string): object => pod({ requests: { cpu } })
    const resize = { resource: 'pods', subresource: 'resize', oldObject: sized('1') }
    assert.equal(await admit(on, { ...resize, object: sized('2') }), undefined)
    assert.equal(used(on)?.['requests.cpu'], '2')
    assert.equal(await admit(on, { ...resize, object: sized('500m') }), undefined)
    assert.equal(used(on)?.['requests.cpu'], '2')
    assert.match((await admit(on, { ...resize, object: sized('3') })) ?? '', /requested: requests.cpu=2/)
  })

  const affinity = {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, podAffinityTerm: { topologyKey: 'k', namespaces: ['x'] } },
      ],
    },
  }
  const cpu = { requests: { cpu: '1' } }
  const selector = (operator: string, values?: string[]): object => ({
    scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator, values }] },
  })
  const scopes: readonly [what: string, spec: object, object: object, counts: boolean][] = [
    [
      'a pod with a deadline in a quota for Terminating',
      { scopes: ['Terminating'] },
      pod({}, { activeDeadlineSeconds: 0 }),
      true,
    ],
    ['a pod without a deadline in a quota for Terminating', { scopes: ['Terminating'] }, pod(), false],
    ['a pod without a deadline in a quota for NotTerminating', { scopes: ['NotTerminating'] }, pod(), true],
    ['a pod without requests in a quota for BestEffort', { scopes: ['BestEffort'] }, pod(), true],
    ['a pod with requests in a quota for BestEffort', { scopes: ['BestEffort'] }, pod(cpu), false],
    ['a pod with requests in a quota for NotBestEffort', { scopes: ['NotBestEffort'] }, pod(cpu), true],
    ['a pod that matches one of two scopes', { scopes: ['NotBestEffort', 'Terminating'] }, pod(cpu), false],
    ['a pod without a priority class in a quota for PriorityClass', { scopes: ['PriorityClass'] }, pod(), false],
    [
      'a pod with a priority class in a quota for PriorityClass',
      { scopes: ['PriorityClass'] },
      pod({}, { priorityClassName: 'a' }),
      true,
    ],
    [
      'a pod whose priority class is in the list of the quota',
      selector('In', ['a', 'b']),
      pod({}, { priorityClassName: 'a' }),
      true,
    ],
    [
      'a pod whose priority class is not in the list of the quota',
      selector('In', ['b']),
      pod({}, { priorityClassName: 'a' }),
      false,
    ],
    ['a pod in a quota for priority classes outside of a list', selector('NotIn', ['b']), pod(), true],
    ['a pod in a quota for pods without a priority class', selector('DoesNotExist'), pod(), true],
    [
      'a pod with affinity to other namespaces in a quota for CrossNamespacePodAffinity',
      { scopes: ['CrossNamespacePodAffinity'] },
      pod({}, { affinity }),
      true,
    ],
    [
      'a pod without affinity in a quota for CrossNamespacePodAffinity',
      { scopes: ['CrossNamespacePodAffinity'] },
      pod(),
      false,
    ],
    ['a pod in a quota for an unknown scope', { scopes: ['Other'] }, pod(), false],
  ]
  for (const [what, spec, object, counts] of scopes) {
    it(`${counts ? 'counts' : 'does not count'} ${what}`, async () => {
      const on = stage([quota({ pods: '5' }, {}, spec)])
      assert.equal(await admit(on, { resource: 'pods', object }), undefined)
      assert.equal(used(on)?.['pods'], counts ? '1' : '0')
    })
  }

  it('charges a pod completely when an update brings it into the scope', async () => {
    const on = stage([quota({ pods: '5' }, {}, { scopes: ['Terminating'] })])
    const write = { resource: 'pods', object: pod({}, { activeDeadlineSeconds: 5 }), oldObject: pod() }
    assert.equal(await admit(on, write), undefined)
    assert.equal(used(on)?.['pods'], '1')
  })

  it('counts a terminated pod only under count/pods', async () => {
    const on = stage([quota({ pods: '5', 'count/pods': '5' })])
    await admit(on, { resource: 'pods', object: pod({}, {}, { status: { phase: 'Succeeded' } }) })
    const metadata = { name: 'p', deletionTimestamp: '2020-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 }
    await admit(on, { resource: 'pods', object: { ...pod(), metadata } })
    assert.deepEqual(used(on), { 'count/pods': '2', pods: '0' })
  })
})

describe('ResourceQuota for other kinds', () => {
  it('counts services, load balancers and node ports', async () => {
    const hard = { services: '9', 'count/services': '9', 'services.nodeports': '9', 'services.loadbalancers': '9' }
    const ports = [{ port: 1 }, { port: 2, nodePort: 30000 }]
    const service = (spec: object): SampleWrite => ({
      resource: 'services',
      object: { metadata: { name: 's' }, spec: { ports, ...spec } },
    })
    const table: readonly [spec: object, ports: string, balancers: string][] = [
      [{ type: 'ClusterIP' }, '0', '0'],
      [{ type: 'NodePort' }, '2', '0'],
      [{ type: 'LoadBalancer' }, '2', '1'],
      [{ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }, '1', '1'],
    ]
    for (const [spec, nodePorts, balancers] of table) {
      const on = stage([quota(hard)])
      assert.equal(await admit(on, service(spec)), undefined)
      assert.deepEqual(used(on), {
        'count/services': '1',
        services: '1',
        'services.loadbalancers': balancers,
        'services.nodeports': nodePorts,
      })
    }
    const on = stage([quota(hard, { services: '1', 'services.nodeports': '0' })])
    const change = { ...service({ type: 'NodePort' }), oldObject: service({ type: 'ClusterIP' }).object as object }
    assert.equal(await admit(on, change), undefined)
    assert.equal(used(on)?.['services'], '1')
    assert.equal(used(on)?.['services.nodeports'], '2')
  })

  it('counts claims by storage class, and the granted size if it is larger than the request', async () => {
    const hard = {
      persistentvolumeclaims: '9',
      'requests.storage': '90Gi',
      'gold.storageclass.storage.k8s.io/requests.storage': '90Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '9',
      'lead.storageclass.storage.k8s.io/requests.storage': '90Gi',
    }
    const claim = (storage: string, status: object = {}): object => ({
      metadata: { name: 'c' },
      spec: { storageClassName: 'gold', resources: { requests: { storage } } },
      status,
    })
    const resource = 'persistentvolumeclaims'
    const on = stage([quota(hard)])
    assert.equal(await admit(on, { resource, object: claim('2Gi') }), undefined)
    assert.deepEqual(used(on), {
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '1',
      'gold.storageclass.storage.k8s.io/requests.storage': '2Gi',
      'lead.storageclass.storage.k8s.io/requests.storage': '0',
      persistentvolumeclaims: '1',
      'requests.storage': '2Gi',
    })
    const granted = claim('2Gi', { allocatedResources: { storage: '5Gi' } })
    assert.equal(
      await admit(on, { resource, subresource: 'status', object: granted, oldObject: claim('2Gi') }),
      undefined,
    )
    assert.equal(used(on)?.['requests.storage'], '5Gi')
    const full = stage([quota({ 'requests.storage': '1Gi' }, { 'requests.storage': '1Gi' })])
    assert.match((await admit(full, { resource, object: claim('1500m') })) ?? '', /requested: requests.storage=2, /)
    const status = { resource, subresource: 'status', object: granted, oldObject: claim('2Gi') }
    assert.equal(await admit(full, status), undefined, 'a status tells what has happened already')
  })

  it('counts claims by VolumeAttributesClass', async () => {
    const spec = {
      scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['fast'] }] },
    }
    for (const [own, count] of [
      [{ spec: { volumeAttributesClassName: 'fast' } }, '1'],
      [{ spec: { volumeAttributesClassName: 'slow' } }, '0'],
      [{ spec: { volumeAttributesClassName: 'slow' }, status: { currentVolumeAttributesClassName: 'fast' } }, '1'],
      [{ spec: {} }, '0'],
    ] as const) {
      const on = stage([quota({ persistentvolumeclaims: '5' }, {}, spec)])
      await admit(on, { resource: 'persistentvolumeclaims', object: { metadata: { name: 'c' }, ...own } })
      assert.equal(used(on)?.['persistentvolumeclaims'], count)
    }
  })

  it("counts devices of ResourceClaims at their maximum, and not twice with the pod's charge", async () => {
    const hard = {
      'count/resourceclaims.resource.k8s.io': '9',
      'gpu.deviceclass.resource.k8s.io/devices': '99',
      'nic.deviceclass.resource.k8s.io/devices': '99',
      'requests.example.com/gpu': '99',
      'requests.deviceclass.resource.kubernetes.io/nic': '99',
    }
    const exactly = (deviceClassName: string, allocationMode: string, count?: number): object => ({
      deviceClassName,
      allocationMode,
      count,
    })
    const requests = [
      { name: 'a', exactly: exactly('gpu', 'ExactCount', 2) },
      {
        name: 'b',
        firstAvailable: [exactly('gpu', 'ExactCount', 1), exactly('gpu', 'ExactCount', 3), exactly('nic', 'All')],
      },
    ]
    const world = {
      'deviceclasses.resource.k8s.io': [
        { metadata: { name: 'gpu' }, spec: { extendedResourceName: 'example.com/gpu' } },
        { metadata: { name: 'nic' }, spec: {} },
      ],
      pods: [{ ...pod({ requests: { 'example.com/gpu': '4' } }), metadata: { name: 'p', namespace: 'ns', uid: 'u' } }],
    }
    const claim = (metadata: object = {}): SampleWrite => ({
      resource: 'resourceclaims.resource.k8s.io',
      object: { metadata: { name: 'c', namespace: 'ns', ...metadata }, spec: { devices: { requests } } },
      world,
    })
    const on = stage([quota(hard)])
    assert.equal(await admit(on, claim()), undefined)
    assert.deepEqual(used(on), {
      'count/resourceclaims.resource.k8s.io': '1',
      'gpu.deviceclass.resource.k8s.io/devices': '5',
      'nic.deviceclass.resource.k8s.io/devices': '32',
      'requests.deviceclass.resource.kubernetes.io/nic': '32',
      'requests.example.com/gpu': '5',
    })
    const again = stage([quota(hard)])
    const owned = {
      annotations: { 'resource.kubernetes.io/extended-resource-claim': 'true' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true }],
    }
    assert.equal(await admit(again, claim(owned)), undefined)
    assert.equal(used(again)?.['requests.example.com/gpu'], '1')
  })
})

describe('ResourceQuota with limitedResources', () => {
  it('rejects the use of a limited resource in a namespace without a quota for it', async () => {
    const limited = [
      { resource: 'persistentvolumeclaims', matchContains: ['.storageclass.storage.k8s.io/requests.storage'] },
    ]
    const claim = {
      resource: 'persistentvolumeclaims',
      object: {
        metadata: { name: 'c' },
        spec: { storageClassName: 'gold', resources: { requests: { storage: '1Gi' } } },
      },
    }
    assert.equal(
      await admit(stage([], limited), claim),
      'persistentvolumeclaims "c" is forbidden: insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage',
    )
    const covered = stage([quota({ 'gold.storageclass.storage.k8s.io/requests.storage': '5Gi' })], limited)
    assert.equal(await admit(covered, claim), undefined)
    assert.equal(await admit(stage([], limited), secret), undefined)
    assert.equal(await admit(stage([], limited), { ...claim, oldObject: claim.object }), undefined)
  })

  it('rejects a pod in a limited scope if no quota covers that scope', async () => {
    const matchScopes = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }]
    const limited = [{ resource: 'pods', matchScopes }]
    const object = pod({}, { priorityClassName: 'high' })
    assert.equal(
      await admit(stage([], limited), { resource: 'pods', object }),
      'insufficient quota to match these scopes: [{PriorityClass In [high]}]',
    )
    assert.equal(await admit(stage([], limited), { resource: 'pods', object: pod() }), undefined)
    const covered = stage([quota({ pods: '1' }, {}, { scopes: ['PriorityClass'] })], limited)
    assert.equal(await admit(covered, { resource: 'pods', object }), undefined)
  })
})
