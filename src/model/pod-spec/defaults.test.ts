import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Pod, PodSpec, Volume } from '#apis/core/v1.ts'
import { deepCopy } from '#meta/object.ts'

import { defaultPod, defaultPodSpec, defaultPodTemplate } from './defaults.ts'
import { web } from './pod-spec.suite.ts'

const all = (): boolean => true

function podWith(spec: Partial<PodSpec>): Pod {
  const pod: Pod = { metadata: { name: 'p' }, spec: { containers: [web()], ...spec }, status: {} }
  defaultPod(pod, all)
  return pod
}

function volumeOf(volume: Omit<Volume, 'name'>): Volume | undefined {
  const spec: PodSpec = { containers: [], volumes: [{ name: 'v', ...volume }] }
  defaultPodSpec(spec)
  return spec.volumes?.[0]
}

describe('defaults of a pod spec', () => {
  it('set the common fields', () => {
    const spec: PodSpec = { containers: [{ name: 'a', image: 'nginx', resources: {} }] }
    defaultPodSpec(spec)
    assert.deepEqual(spec, {
      containers: [
        {
          name: 'a',
          image: 'nginx',
          resources: {},
          imagePullPolicy: 'Always',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
        },
      ],
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      schedulerName: 'default-scheduler',
    })
  })

  it('are set in probes, ports and references', () => {
    const container = web({
      ports: [{ containerPort: 80 }],
      env: [
        { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'B', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } },
      ],
      livenessProbe: { httpGet: { port: 80 } },
      readinessProbe: { grpc: { port: 1, service: null } },
      lifecycle: { preStop: { httpGet: { port: 1, path: '/bye' } } },
    })
    defaultPodSpec({ containers: [container] })
    assert.equal(container.ports?.[0]?.protocol, 'TCP')
    assert.equal(container.env?.[0]?.valueFrom?.fieldRef?.apiVersion, 'v1')
    assert.equal(container.env?.[1]?.valueFrom?.fileKeyRef?.optional, false)
    const probe = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 }
    assert.deepEqual(container.livenessProbe, { httpGet: { port: 80, path: '/', scheme: 'HTTP' }, ...probe })
    assert.deepEqual(container.readinessProbe, { grpc: { port: 1, service: '' }, ...probe })
    assert.deepEqual(container.lifecycle?.preStop?.httpGet, { port: 1, path: '/bye', scheme: 'HTTP' })
  })

  it('are set in every type of volume', () => {
    assert.deepEqual(volumeOf({}), { name: 'v', emptyDir: {} })
    assert.equal(volumeOf({ hostPath: { path: '/' } })?.hostPath?.type, '')
    assert.equal(volumeOf({ secret: { secretName: 's' } })?.secret?.defaultMode, 0o644)
    assert.equal(volumeOf({ configMap: { name: 'c', defaultMode: 0 } })?.configMap?.defaultMode, 0)
    assert.equal(volumeOf({ image: { reference: 'a:1' } })?.image?.pullPolicy, 'IfNotPresent')
    assert.equal(volumeOf({ image: { reference: 'a' } })?.image?.pullPolicy, 'Always')
    assert.deepEqual(volumeOf({ rbd: { monitors: ['m'], image: 'i' } })?.rbd, {
      monitors: ['m'],
      image: 'i',
      pool: 'rbd',
      user: 'admin',
      keyring: '/etc/ceph/keyring',
    })
    assert.deepEqual(volumeOf({ projected: { sources: [{ serviceAccountToken: { path: 't' } }] } })?.projected, {
      sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }],
      defaultMode: 0o644,
    })
  })

  it('set serviceAccount to the value of serviceAccountName', () => {
    assert.equal(podWith({ serviceAccount: 'a' }).spec.serviceAccountName, 'a')
    assert.equal(podWith({ serviceAccount: 'a', serviceAccountName: 'b' }).spec.serviceAccount, 'b')
  })

  it('round resource quantities up to thousandths', () => {
    const { spec } = podWith({ overhead: { cpu: '0.0001' } })
    assert.equal(spec.overhead?.cpu, '1m')
  })

  it('set requests of a pod to its limits, but not those of a pod template', () => {
    const container = (): PodSpec['containers'] => [
      web({ resources: { limits: { cpu: '1' }, requests: { memory: '1Gi' } } }),
    ]
    assert.deepEqual(podWith({ containers: container() }).spec.containers[0]?.resources.requests, {
      cpu: '1',
      memory: '1Gi',
    })
    const template = { metadata: {}, spec: { containers: container() } }
    defaultPodTemplate(template)
    assert.deepEqual(template.spec.containers[0]?.resources.requests, { memory: '1Gi' })
  })

  it('set pod-level requests', () => {
    const containers = [web({ resources: { requests: { cpu: '1' }, limits: { 'hugepages-2Mi': '2Mi' } } })]
    const { resources } = podWith({ containers, resources: { limits: { cpu: '3', memory: '1Gi' } } }).spec
    assert.deepEqual(resources, {
      limits: { cpu: '3', memory: '1Gi', 'hugepages-2Mi': '2Mi' },
      requests: { cpu: '1', memory: '1Gi', 'hugepages-2Mi': '2Mi' },
    })
  })

  it('set host ports with hostNetwork', () => {
    const containers = [web({ ports: [{ containerPort: 80 }, { containerPort: 81, hostPort: 8081 }] })]
    const ports = podWith({ hostNetwork: true, containers }).spec.containers[0]?.ports
    assert.deepEqual(
      ports?.map(({ hostPort }) => hostPort),
      [80, 8081],
    )
  })

  it('replace a negative grace period of a pod', () => {
    assert.equal(podWith({ terminationGracePeriodSeconds: -5 }).spec.terminationGracePeriodSeconds, 1)
    const spec: PodSpec = { containers: [], terminationGracePeriodSeconds: -5 }
    defaultPodSpec(spec)
    assert.equal(spec.terminationGracePeriodSeconds, -5)
  })

  it('drop annotations of old releases for init containers', () => {
    const pod: Pod = {
      metadata: { annotations: { 'pod.beta.kubernetes.io/init-containers': '[]', a: 'b' } },
      spec: { containers: [] },
      status: {},
    }
    defaultPod(pod, all)
    assert.deepEqual(pod.metadata.annotations, { a: 'b' })
  })

  it('change nothing the second time', () => {
    const image = fc.constantFrom('a', 'a:1', 'A', '')
    const amounts = fc.dictionary(
      fc.constantFrom('cpu', 'memory', 'hugepages-2Mi'),
      fc.constantFrom('1', '0.00001', '1Gi'),
    )
    const resources = fc.record({ limits: amounts, requests: amounts }, { requiredKeys: [] })
    const container = fc.record({ name: fc.constant('a'), image, resources })
    const spec = fc.record(
      {
        containers: fc.array(container, { maxLength: 2 }),
        initContainers: fc.array(container, { maxLength: 2 }),
        resources,
        hostNetwork: fc.boolean(),
      },
      { requiredKeys: ['containers'] },
    )
    fc.assert(
      fc.property(spec, (given) => {
        const { spec: once } = podWith(deepCopy(given))
        const { spec: twice } = podWith(deepCopy(once))
        assert.deepEqual(twice, once)
      }),
    )
  })
})
