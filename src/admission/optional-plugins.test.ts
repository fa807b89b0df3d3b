/** Tests small admission plugins that are off by default or behind a feature gate. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit, refusal, run, sampleWrite } from '#kits/admission/sample-write.ts'

import { alwaysDeny } from './always-deny.ts'
import { alwaysPullImages } from './always-pull-images.ts'
import { denyServiceExternalIps } from './deny-service-external-ips.ts'
import { extendedResourceToleration } from './extended-resource-toleration.ts'
import { createJobValidation } from './job-validation.ts'
import { limitPodHardAntiAffinityTopology } from './limit-pod-hard-anti-affinity-topology.ts'
import { namespaceExists } from './namespace-exists.ts'
import { createPodGroupProtection } from './pod-group-protection.ts'
import { createPodGroupWorkloadExists } from './pod-group-workload-exists.ts'

const isEnabled = (): boolean => true

describe('AlwaysPullImages', () => {
  const pod = (image: string, imagePullPolicy = 'IfNotPresent'): object => ({
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image, imagePullPolicy }], volumes: [{ name: 'v', image: { reference: 'r' } }] },
  })
  it('sets imagePullPolicy Always, except in existing containers of the pod', async () => {
    const { spec } = (await admit(alwaysPullImages, { resource: 'pods', object: pod('a') })) as Pod
    assert.equal(spec.containers[0]!.imagePullPolicy, 'Always')
    assert.equal(spec.volumes![0]!.image!.pullPolicy, 'Always')
    const kept = (await admit(alwaysPullImages, { resource: 'pods', object: pod('a'), oldObject: pod('a') })) as Pod
    assert.equal(kept.spec.containers[0]!.imagePullPolicy, 'IfNotPresent')
  })
  it('rejects an imagePullPolicy that a later plugin changed back', async () => {
    const { attributes } = sampleWrite({ resource: 'pods', object: pod('a') })
    await assert.rejects(async () => alwaysPullImages.validate!(attributes), {
      message:
        'pods "p" is forbidden: [spec.containers[0].imagePullPolicy: Unsupported value: "IfNotPresent": supported values: "Always", spec.volumes[0].image.pullPolicy: Unsupported value: "": supported values: "Always"]',
    })
  })
})

describe('DenyServiceExternalIPs', () => {
  const service = (...externalIPs: string[]): object => ({ metadata: { name: 's' }, spec: { externalIPs } })
  it('rejects new externalIPs of a Service, but allows it to keep or remove existing ones', async () => {
    const refusalOf = (object: object, oldObject?: object): Promise<string | undefined> =>
      refusal(denyServiceExternalIps, {
        resource: 'services',
        object,
        ...(oldObject === undefined ? {} : { oldObject }),
      })
    const denied = 'services "s" is forbidden: Use of external IPs is denied by admission control'
    assert.equal(await refusalOf(service()), undefined)
    assert.equal(await refusalOf(service('1.1.1.1')), denied)
    assert.equal(await refusalOf(service('1.1.1.1'), service('1.1.1.1', '2.2.2.2')), undefined)
    assert.equal(await refusalOf(service('3.3.3.3'), service('1.1.1.1')), denied)
  })
})

describe('LimitPodHardAntiAffinityTopology', () => {
  it('allows required anti-affinity only with topologyKey kubernetes.io/hostname', async () => {
    const pod = (topologyKey: string): object => ({
      metadata: { name: 'p' },
      spec: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey }] } } },
    })
    const refusalOf = (object: object): Promise<string | undefined> =>
      refusal(limitPodHardAntiAffinityTopology, { resource: 'pods', object })
    assert.equal(await refusalOf(pod('kubernetes.io/hostname')), undefined)
    assert.equal(
      await refusalOf(pod('zone')),
      'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
    )
  })
})

describe('ExtendedResourceToleration', () => {
  it('adds one toleration per extended resource that a pod requests', async () => {
    const toleration = (key: string): object => ({ key, operator: 'Exists', effect: 'NoSchedule' })
    const requests = { cpu: '1', 'b.com/x': '1', 'a.com/y': '1' }
    const spec = { containers: [{ name: 'c', resources: { requests } }], tolerations: [toleration('b.com/x')] }
    const object = { metadata: { name: 'p' }, spec }
    const admitted = (await admit(extendedResourceToleration, { resource: 'pods', object })) as Pod
    assert.deepEqual(admitted.spec.tolerations, [toleration('b.com/x'), toleration('a.com/y')])
  })
})

describe('NamespaceExists and AlwaysDeny', () => {
  it('reject writes to a missing namespace (NamespaceExists) and all writes (AlwaysDeny)', async () => {
    const write = { resource: 'secrets', object: { metadata: { name: 's' } } }
    assert.equal(await refusal(namespaceExists, write), 'namespaces "ns" not found')
    assert.equal(
      await refusal(namespaceExists, { ...write, world: { namespaces: [{ metadata: { name: 'ns' } }] } }),
      undefined,
    )
    assert.equal(
      await refusal(alwaysDeny, write),
      'secrets "s" is forbidden: admission control is denying all modifications',
    )
  })
})

describe('admission plugins for workloads', () => {
  const resource = 'podgroups.scheduling.k8s.io'
  const group = (workload: object | null = null): object => ({
    metadata: { name: 'g' },
    spec: { podGroupTemplateRef: workload === null ? null : { workload }, schedulingPolicy: {} },
  })

  it('PodGroupProtection adds a finalizer to a PodGroup if the feature gate is on', async () => {
    const plugin = createPodGroupProtection({ isEnabled })
    const kept = await admit(plugin, { resource, object: group() })
    assert.deepEqual(kept!.metadata.finalizers, ['scheduling.k8s.io/podgroup-protection'])
    const off = createPodGroupProtection({ isEnabled: () => false })
    assert.deepEqual(await admit(off, { resource, object: group() }), group())
  })

  it('PodGroupWorkloadExists requires that the Workload and template of a PodGroup exist', async () => {
    const plugin = createPodGroupWorkloadExists({ isEnabled })
    const spec = { podGroupTemplates: [{ name: 't' }] }
    const world = {
      'workloads.scheduling.k8s.io': [
        { metadata: { name: 'w' }, spec },
        { metadata: { name: 'going', deletionTimestamp: '2026-01-01T00:00:00Z' }, spec },
      ],
    }
    const refusalOf = (workloadName: string, podGroupTemplateName = 't'): Promise<string | undefined> =>
      refusal(plugin, { resource, object: group({ workloadName, podGroupTemplateName }), world })
    const start = 'podgroups.scheduling.k8s.io "g" is forbidden: PodGroup rejected:'
    assert.equal(await refusalOf('w'), undefined)
    assert.equal(await refusalOf('x'), `${start} Workload "x" not found`)
    assert.equal(await refusalOf('going'), `${start} Workload "going" is being deleted`)
    assert.equal(await refusalOf('w', 'u'), `${start} PodGroupTemplate "u" not found in Workload "w"`)
  })

  it('JobValidation rejects a changed parallelism of a gang-scheduled Job', async () => {
    const plugin = createJobValidation({ isEnabled })
    const job = (parallelism: number, podGroupName?: string): object => ({
      metadata: { name: 'j', uid: 'u' },
      spec: {
        parallelism,
        template: { spec: { schedulingGroup: podGroupName === undefined ? undefined : { podGroupName } } },
      },
    })
    const gang = { schedulingPolicy: { gang: { minCount: 2 } } }
    const world = {
      [resource]: [
        { metadata: { name: 'named' }, spec: gang },
        { metadata: { name: 'own', ownerReferences: [{ uid: 'u', controller: true }] }, spec: gang },
        { metadata: { name: 'loose' }, spec: { schedulingPolicy: { basic: {} } } },
      ],
    }
    const refusalOf = async (next: object, old: object): Promise<string | undefined> => {
      const { attributes } = sampleWrite({ resource: 'jobs.batch', object: next, oldObject: old, world })
      return run(plugin, attributes).then(
        () => undefined,
        (error: Error) => error.message,
      )
    }
    const message =
      'jobs.batch "j" is forbidden: cannot change parallelism for a Job referencing gang-scheduled PodGroup'
    assert.equal(await refusalOf(job(2), job(2)), undefined)
    assert.equal(await refusalOf(job(3, 'named'), job(2, 'named')), `${message} "named"`)
    assert.equal(await refusalOf(job(3), job(2)), `${message} "own"`)
    assert.equal(await refusalOf(job(3, 'loose'), job(2, 'loose')), undefined)
  })
})
