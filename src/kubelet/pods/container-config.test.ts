import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'

import type { Container, Pod, PodSpec, Service } from '#apis/core/v1.ts'

import { NO_RUN_OPTIONS, type RunContainerOptions } from '../pod/run-options.ts'
import { containerConfig, containerHash, type ContainerInput, imageUserOf } from './container-config.ts'
import { type EnvironmentInput, environmentOf, type EnvironmentSources, expand } from './environment.ts'
import { hostsFile } from './hosts-file.ts'

const PLAIN: Container = { name: 'c', image: 'nginx:1', resources: {} }

function podOf(spec: Partial<PodSpec> = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'default', uid: 'u1', labels: { app: 'web' } },
    spec: { containers: [PLAIN], nodeName: 'node1', terminationGracePeriodSeconds: 30, ...spec },
    status: { qosClass: 'BestEffort' },
  }
}

function configOf(
  container: Partial<Container>,
  spec: Partial<PodSpec> = {},
  more: Partial<ContainerInput> = {},
): ReturnType<typeof containerConfig> {
  return containerConfig({
    pod: podOf(spec),
    container: { ...PLAIN, ...container },
    restartCount: 2,
    facts: { memoryBytes: 1024 ** 3, rootDir: '/var/lib/kubelet' },
    environment: new Map([['WHO', 'me']]),
    mounts: [],
    imageRef: 'sha256:abc',
    imageUser: { uid: 0 },
    ...more,
  })
}

test('containerHash() equals upstream’s hash', () => {
  assert.equal(containerHash({ name: 'test_container', image: 'foo/image:v1', resources: {} }), '8e45cbd0')
})

test('the container config contains the metadata, command and log path of the container', () => {
  const config = configOf({ command: ['echo', '$(WHO) $$(WHO) $(NOBODY)'], ports: [{ containerPort: 80 }] })
  assert.deepEqual(config.metadata, { name: 'c', attempt: 2 })
  assert.deepEqual(config.image, { image: 'sha256:abc', userSpecifiedImage: 'nginx:1' })
  assert.deepEqual(config.command, ['echo', 'me $(WHO) $(NOBODY)'])
  assert.equal(config.logPath, 'c/2.log')
  const annotations = Object.fromEntries(config.annotations ?? [])
  assert.equal(annotations['io.kubernetes.container.restartCount'], '2')
  assert.equal(annotations['io.kubernetes.pod.terminationGracePeriod'], '30')
  assert.equal(annotations['io.kubernetes.container.ports'], '[{"containerPort":80}]')
  assert.equal(config.labels?.get('io.kubernetes.container.name'), 'c')
})

test('the container config has cpusets and no CPU quota for exclusive CPUs', () => {
  const limits = { cpu: '2', memory: '64Mi' }
  const of = (runOptions: Partial<RunContainerOptions>): LinuxResources => {
    const { resources } =
      configOf({ resources: { limits } }, {}, { runOptions: { ...NO_RUN_OPTIONS, ...runOptions } }).linux ?? {}
    return resources
  }
  const shared = of({ cpus: '0,3' })
  assert.deepEqual([shared?.cpuQuota, shared?.cpusetCpus, shared?.cpusetMems], [200_000, '0,3', undefined])
  const own = of({ cpus: '1-2', hasExclusiveCpus: true, memoryNodes: '0' })
  assert.deepEqual([own?.cpuQuota, own?.cpuPeriod, own?.cpusetCpus, own?.cpusetMems], [-1, 100_000, '1-2', '0'])
})

type LinuxResources = NonNullable<ReturnType<typeof containerConfig>['linux']>['resources']

test('the container config without securityContext has unconfined seccomp, masked paths and the image’s user', () => {
  const security = configOf({}).linux?.securityContext
  assert.deepEqual(security?.seccomp, { profileType: 1 })
  assert.equal(security?.maskedPaths?.length, 12)
  assert.equal(security?.readonlyPaths?.length, 5)
  assert.deepEqual(security?.runAsUser, { value: 0 })
  assert.equal(security?.noNewPrivs, false)
})

test('the container config prefers the security context of the container to that of the pod', () => {
  const security = configOf(
    {
      securityContext: {
        runAsUser: 7,
        allowPrivilegeEscalation: false,
        procMount: 'Unmasked',
        capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
        seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' },
        appArmorProfile: { type: 'RuntimeDefault' },
      },
    },
    { securityContext: { runAsUser: 1, runAsGroup: 9, fsGroup: 5, seccompProfile: { type: 'RuntimeDefault' } } },
  ).linux?.securityContext
  assert.deepEqual(
    [security?.runAsUser, security?.runAsGroup, security?.supplementalGroups],
    [{ value: 7 }, { value: 9 }, [5]],
  )
  assert.deepEqual(security?.capabilities, { addCapabilities: ['NET_ADMIN'], dropCapabilities: ['ALL'] })
  assert.deepEqual(security?.seccomp, { profileType: 2, localhostRef: '/var/lib/kubelet/seccomp/a.json' })
  assert.deepEqual([security?.apparmor, security?.apparmorProfile], [{ profileType: 0 }, 'runtime/default'])
  assert.deepEqual([security?.noNewPrivs, security?.maskedPaths, security?.readonlyPaths], [true, [], []])
})

describe('imageUserOf() for the status of an image', () => {
  const uid = (value: number | bigint): { value: bigint } => ({ value: BigInt(value) })
  for (const [name, image, user] of [
    ['returns root for an image without USER', { uid: undefined, username: '' }, { uid: 0 }],
    ['returns root for UID 0', { uid: uid(0), username: '' }, { uid: 0 }],
    ['returns a numeric user', { uid: uid(1000), username: '' }, { uid: 1000 }],
    ['returns a user name', { uid: undefined, username: 'nobody' }, { name: 'nobody' }],
    ['prefers a number to a name, as upstream', { uid: uid(0), username: 'nobody' }, { uid: 0 }],
  ] as const)
    it(name, () => assert.deepEqual(imageUserOf(image), user))
})

describe('container config with runAsNonRoot', () => {
  const POD_POLICY = { securityContext: { runAsNonRoot: true } }
  const where = '(pod: "web_default(u1)", container: c)'
  const root = `container has runAsNonRoot and image will run as root ${where}`
  const withoutUser = imageUserOf({ uid: undefined, username: '' })

  it('rejects an image without USER, with the policy on the pod or on the container', () => {
    assert.throws(() => configOf({}, POD_POLICY, { imageUser: withoutUser }), { message: root })
    assert.throws(() => configOf(POD_POLICY, {}, { imageUser: withoutUser }), { message: root })
    const both = { securityContext: { runAsNonRoot: false } }
    assert.throws(() => configOf(POD_POLICY, both, { imageUser: withoutUser }), { message: root })
  })

  it('rejects names, root and numbers out of range', () => {
    const name = `container has runAsNonRoot and image has non-numeric user (root), cannot verify user is non-root ${where}`
    assert.throws(() => configOf({}, POD_POLICY, { imageUser: { name: 'root' } }), { message: name })
    assert.throws(() => configOf({ securityContext: { runAsUser: 0 } }, POD_POLICY), {
      message: `container's runAsUser breaks non-root policy ${where}`,
    })
    for (const uid of [-1, 2 ** 31])
      assert.throws(() => configOf({}, POD_POLICY, { imageUser: { uid } }), {
        message: `container has runAsNonRoot and image has an invalid user id (${uid}). (Must be 1-(2147483647)): must be between 0 and 2147483647, inclusive ${where}`,
      })
  })

  it('accepts users that are not root, and any user if the container overrides the pod', () => {
    const userOf = (...input: Parameters<typeof configOf>): unknown => {
      const { runAsUser, runAsUsername } = configOf(...input).linux?.securityContext ?? {}
      return runAsUser?.value ?? runAsUsername
    }
    assert.equal(userOf({}, POD_POLICY, { imageUser: { uid: 1000 } }), 1000)
    assert.equal(userOf({ securityContext: { runAsUser: 7 } }, POD_POLICY, { imageUser: withoutUser }), 7)
    const isAllowed = { securityContext: { runAsNonRoot: false } }
    assert.equal(userOf(isAllowed, POD_POLICY, { imageUser: withoutUser }), 0)
    assert.equal(userOf({}, {}, { imageUser: { name: 'nobody' } }), 'nobody')
  })
})

test('an ephemeral container shares the process namespace of its target', () => {
  const security = configOf({}, {}, { targetId: 'id1' }).linux?.securityContext?.namespaceOptions
  assert.deepEqual([security?.pid, security?.targetId], [3, 'id1'])
})

const NOTHING: EnvironmentSources = {
  configMap: async () => undefined,
  secret: async () => undefined,
  file: async () => '',
}

const KUBERNETES: Service = {
  metadata: { name: 'kubernetes', namespace: 'default' },
  spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }] },
  status: { loadBalancer: {} },
}

function environment(
  container: Partial<Container>,
  more: Partial<EnvironmentInput> = {},
): Promise<Map<string, string>> {
  return environmentOf({
    pod: podOf(),
    container: { ...PLAIN, ...container },
    addresses: { hostIps: ['10.0.0.1'], podIps: ['10.1.0.2', 'fd00::2'] },
    services: [],
    allocatable: { cpu: '2', memory: '4Gi' },
    sources: NOTHING,
    ...more,
  })
}

test('environment variables of a container come from the pod, its container, ConfigMaps, Secrets and files', async () => {
  const sources: EnvironmentSources = {
    configMap: async () => ({ metadata: {}, data: { a: '1', b: '2' } }),
    secret: async () => ({ metadata: {}, data: { s: Buffer.from('hush').toString('base64') } }),
    file: async () => "# words\nKEY='some thing'\n",
  }
  const field = (fieldPath: string): object => ({ fieldRef: { fieldPath } })
  const from = (name: string, valueFrom: object): { name: string; valueFrom: object } => ({ name, valueFrom })
  const env = await environment(
    {
      envFrom: [{ prefix: 'P_', configMapRef: { name: 'cm' } }, { secretRef: { name: 's' } }],
      env: [
        { name: 'PLAIN', value: '$(P_a)/$(LATER)' },
        from('IPS', field('status.podIPs')),
        from('APP', field("metadata.labels['app']")),
        from('CPU', { resourceFieldRef: { resource: 'limits.cpu' } }),
        from('MEMORY', { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } }),
        from('ONE', { configMapKeyRef: { name: 'cm', key: 'a' } }),
        from('TWO', { secretKeyRef: { name: 's', key: 's' } }),
        from('FILE', { fileKeyRef: { volumeName: 'v', path: 'env', key: 'KEY' } }),
        from('NONE', { configMapKeyRef: { name: 'cm', key: 'zz', optional: true } }),
      ] as NonNullable<Container['env']>,
    },
    { sources },
  )
  assert.deepEqual(Object.fromEntries(env), {
    P_a: '1',
    P_b: '2',
    s: 'hush',
    PLAIN: '1/$(LATER)',
    IPS: '10.1.0.2,fd00::2',
    APP: 'web',
    CPU: '2',
    MEMORY: '0',
    ONE: '1',
    TWO: 'hush',
    FILE: 'some thing',
  })
})

test('environment variables from missing ConfigMaps, Secrets and keys cause upstream’s messages', async () => {
  const refer = (valueFrom: object): Partial<Container> => ({
    env: [{ name: 'X', valueFrom }] as NonNullable<Container['env']>,
  })
  const configMap = async (): Promise<{ metadata: object }> => ({ metadata: {} })
  await assert.rejects(environment({ envFrom: [{ configMapRef: { name: 'absent' } }] }), {
    message: 'configmap "absent" not found',
  })
  await assert.rejects(environment(refer({ secretKeyRef: { name: 'ca-x', key: 'k' } })), {
    message: 'secret "ca-x" not found',
  })
  await assert.rejects(
    environment(refer({ configMapKeyRef: { name: 'cm1', key: 'zz' } }), { sources: { ...NOTHING, configMap } }),
    {
      message: "couldn't find key zz in ConfigMap default/cm1",
    },
  )
})

test('environment variables describe all Services, or only the API server with enableServiceLinks false', async () => {
  const near = { ...KUBERNETES, metadata: { name: 'my-db', namespace: 'default' } }
  const pod = podOf({ enableServiceLinks: false })
  assert.deepEqual(
    [...(await environment({}, { pod, services: [near, KUBERNETES] }))],
    [
      ['KUBERNETES_SERVICE_HOST', '10.96.0.1'],
      ['KUBERNETES_SERVICE_PORT', '443'],
      ['KUBERNETES_SERVICE_PORT_HTTPS', '443'],
      ['KUBERNETES_PORT', 'tcp://10.96.0.1:443'],
      ['KUBERNETES_PORT_443_TCP', 'tcp://10.96.0.1:443'],
      ['KUBERNETES_PORT_443_TCP_PROTO', 'tcp'],
      ['KUBERNETES_PORT_443_TCP_PORT', '443'],
      ['KUBERNETES_PORT_443_TCP_ADDR', '10.96.0.1'],
    ],
  )
  assert.equal((await environment({}, { services: [near] })).get('MY_DB_SERVICE_HOST'), '10.96.0.1')
})

test('the expansion of variables in commands turns $$ into a dollar sign, and keeps unknown names', () => {
  const known = (name: string): string | undefined => (name === 'A' ? 'x' : undefined)
  assert.equal(expand('$(A)$$(A)$(B)$A', known), 'x$(A)$(B)$A')
})

test('/etc/hosts of a container contains the pod and its aliases', () => {
  const pod = podOf({ hostname: 'hh', subdomain: 'sub', hostAliases: [{ ip: '1.2.3.4', hostnames: ['foo', 'bar'] }] })
  const text = hostsFile(pod, ['10.1.0.2'], 'cluster.local', '')
  assert.match(text, /^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n/)
  assert.match(
    text,
    /\n10\.1\.0\.2\thh\.sub\.default\.svc\.cluster\.local\thh\n\n# Entries added by HostAliases\.\n1\.2\.3\.4\tfoo\tbar\n$/,
  )
  const ofNode = hostsFile(podOf({ hostNetwork: true }), [], 'cluster.local', '127.0.0.1 x\n')
  assert.equal(ofNode, '# Kubernetes-managed hosts file (host network).\n127.0.0.1 x\n')
})
