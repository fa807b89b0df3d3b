import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodSpec } from '#apis/core/v1.ts'
import { refusal, refusalStatus, run, type SampleWrite, sampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { createPodSecurity } from './pod-security.ts'
import { type LevelVersion, parsePolicy, PRIVILEGED } from './policy.ts'
import { detailsText, violationsOf } from './standards.ts'

const clock = createVirtualClock()
const plugin = createPodSecurity({ clock })

type Change = Readonly<{ spec?: object; container?: object; annotations?: Record<string, string> }>

/** A pod that satisfies the restricted standard, with the change. */
function pod({ spec = {}, container = {}, annotations = {} }: Change = {}): { metadata: object; spec: PodSpec } {
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
  return {
    metadata: { name: 'p', annotations },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        { name: 'c', resources: {}, ...container, securityContext: { ...securityContext, ...sub(container) } },
      ],
      ...spec,
    },
  }
}

function sub(container: object): object {
  return (container as { securityContext?: object }).securityContext ?? {}
}

const at = (level: LevelVersion['level'], minor = Infinity): LevelVersion => ({ level, minor })
const container = (securityContext: object): Change => ({ container: { securityContext } })
const podWide = (securityContext: object): Change => ({
  spec: { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' }, ...securityContext } },
})
const sysctl = (...names: string[]): Change => podWide({ sysctls: names.map((name) => ({ name, value: '1' })) })
const windows = { os: { name: 'windows' } }

describe('violationsOf() with the Pod Security Standards', () => {
  const table: readonly [what: string, at: LevelVersion, change: Change, expected: string][] = [
    ['a pod without violations', at('restricted'), {}, ''],
    ['any pod at the privileged level', at('privileged'), { spec: { hostPID: true } }, ''],
    [
      'AppArmor fields',
      at('baseline'),
      { ...podWide({ appArmorProfile: { type: 'Unconfined' } }), ...container({ appArmorProfile: { type: 'Other' } }) },
      'forbidden AppArmor profiles (pod and container "c" must not set AppArmor profile type to "Other", "Unconfined")',
    ],
    [
      'an AppArmor annotation',
      at('baseline'),
      { annotations: { 'container.apparmor.security.beta.kubernetes.io/c': 'unconfined' } },
      'forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/c="unconfined"")',
    ],
    [
      'allowed AppArmor annotations',
      at('baseline'),
      { annotations: { 'container.apparmor.security.beta.kubernetes.io/c': 'localhost/x' } },
      '',
    ],
    [
      'capabilities',
      at('baseline'),
      container({ capabilities: { add: ['NET_RAW', 'SYS_ADMIN', 'CHOWN'] } }),
      'non-default capabilities (container "c" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)',
    ],
    [
      'capabilities under restricted, with one message',
      at('restricted'),
      container({ capabilities: { add: ['NET_RAW', 'NET_BIND_SERVICE'] } }),
      'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" must not include "NET_RAW" in securityContext.capabilities.add)',
    ],
    [
      'capabilities before v1.22',
      at('restricted', 21),
      container({ capabilities: { add: ['NET_RAW'] } }),
      'non-default capabilities (container "c" must not include "NET_RAW" in securityContext.capabilities.add)',
    ],
    [
      'host namespaces',
      at('baseline'),
      { spec: { hostIPC: true, hostNetwork: true, hostPID: true } },
      'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
    ],
    [
      'host paths',
      at('baseline'),
      {
        spec: {
          volumes: [
            { name: 'a', hostPath: {} },
            { name: 'b', hostPath: {} },
            { name: 'c', emptyDir: {} },
          ],
        },
      },
      'hostPath volumes (volumes "a", "b")',
    ],
    [
      'host paths under restricted, with one message',
      at('restricted'),
      {
        spec: {
          volumes: [
            { name: 'a', hostPath: {} },
            { name: 'b', nfs: {} },
            { name: 'c', future: {} },
          ],
        },
      },
      'restricted volume types (volumes "a", "b", "c" use restricted volume types "hostPath", "nfs", "unknown")',
    ],
    [
      'host ports',
      at('baseline'),
      {
        container: {
          ports: [
            { containerPort: 1, hostPort: 80 },
            { containerPort: 2, hostPort: 443 },
          ],
        },
      },
      'hostPort (container "c" uses hostPorts 443, 80)',
    ],
    [
      'probe hosts',
      at('baseline'),
      {
        container: {
          livenessProbe: { httpGet: { host: 'b' } },
          lifecycle: { preStop: { tcpSocket: { host: 'a' } } },
          startupProbe: { tcpSocket: { host: '' } },
        },
      },
      'probe or lifecycle host (container "c" uses probe or lifecycle hosts "a", "b")',
    ],
    ['probe hosts before v1.34', at('baseline', 33), { container: { livenessProbe: { httpGet: { host: 'b' } } } }, ''],
    [
      'privileged containers',
      at('baseline'),
      container({ privileged: true }),
      'privileged (container "c" must not set securityContext.privileged=true)',
    ],
    [
      'proc mounts',
      at('baseline'),
      container({ procMount: 'Unmasked' }),
      'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ],
    [
      'proc mounts in a user namespace',
      at('baseline'),
      { ...container({ procMount: 'Unmasked' }), spec: { hostUsers: false } },
      '',
    ],
    [
      'proc mounts in a user namespace before v1.35',
      at('baseline', 34),
      { ...container({ procMount: 'Unmasked' }), spec: { hostUsers: false } },
      'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ],
    [
      'SELinux options',
      at('baseline'),
      {
        ...podWide({ seLinuxOptions: { type: 'foo' } }),
        ...container({ seLinuxOptions: { type: 'bar', user: 'u', role: 'r' } }),
      },
      'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: types "bar", "foo"; user may not be set; role may not be set)',
    ],
    ['a newer SELinux type', at('baseline'), container({ seLinuxOptions: { type: 'container_engine_t' } }), ''],
    [
      'a newer SELinux type before v1.31',
      at('baseline', 30),
      container({ seLinuxOptions: { type: 'container_engine_t' } }),
      'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
    ],
    [
      'seccomp profiles',
      at('baseline'),
      { ...podWide({ seccompProfile: { type: 'Unconfined' } }) },
      'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    [
      'seccomp annotations before v1.19',
      at('baseline', 18),
      {
        annotations: {
          'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
          'container.seccomp.security.alpha.kubernetes.io/c': 'docker/default',
        },
      },
      'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
    ],
    [
      'sysctls',
      at('baseline'),
      sysctl('kernel.msgmax', 'net.ipv4.tcp_rmem', 'fs.x'),
      'forbidden sysctls (kernel.msgmax, fs.x)',
    ],
    [
      'sysctls that v1.29 added, at version v1.28',
      at('baseline', 28),
      sysctl('net.ipv4.ip_local_reserved_ports', 'net.ipv4.tcp_fin_timeout'),
      'forbidden sysctls (net.ipv4.tcp_fin_timeout)',
    ],
    [
      'at version v1.31 the sysctls that v1.32 added',
      at('baseline', 31),
      sysctl('net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_wmem'),
      'forbidden sysctls (net.ipv4.tcp_wmem)',
    ],
    [
      'sysctls that v1.27 added, at version v1.26',
      at('baseline', 26),
      sysctl('net.ipv4.ip_local_reserved_ports'),
      'forbidden sysctls (net.ipv4.ip_local_reserved_ports)',
    ],
    [
      'Windows host processes',
      at('baseline'),
      podWide({ windowsOptions: { hostProcess: true } }),
      'hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)',
    ],
    [
      'allowPrivilegeEscalation',
      at('restricted'),
      {
        spec: {
          initContainers: [{ name: 'i' }],
          ephemeralContainers: [
            { name: 'e', securityContext: { allowPrivilegeEscalation: true, capabilities: { drop: ['ALL'] } } },
          ],
        },
      },
      'allowPrivilegeEscalation != false (containers "i", "e" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "i" must set securityContext.capabilities.drop=["ALL"])',
    ],
    ['allowPrivilegeEscalation before v1.8', at('restricted', 7), container({ allowPrivilegeEscalation: true }), ''],
    [
      'Windows pods',
      at('restricted'),
      { spec: { ...windows, securityContext: { runAsNonRoot: true }, containers: [{ name: 'c' }] } },
      '',
    ],
    [
      'Windows pods before v1.25',
      at('restricted', 24),
      { spec: { ...windows, securityContext: { runAsNonRoot: true }, containers: [{ name: 'c' }] } },
      'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ],
    [
      'a container without runAsNonRoot',
      at('restricted'),
      { spec: { securityContext: { seccompProfile: { type: 'Localhost' } } } },
      'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
    ],
    [
      'runAsNonRoot=false',
      at('restricted'),
      { ...podWide({ runAsNonRoot: false }), ...container({ runAsNonRoot: false }) },
      'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
    ],
    [
      'runAsUser 0 in a user namespace',
      at('restricted'),
      { spec: { hostUsers: false, securityContext: { runAsUser: 0, seccompProfile: { type: 'Localhost' } } } },
      '',
    ],
    [
      'runAsUser 0',
      at('restricted'),
      { ...podWide({ runAsUser: 0 }), ...container({ runAsUser: 0 }) },
      'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
    ],
    ['runAsUser 0 before v1.23', at('restricted', 22), podWide({ runAsUser: 0 }), ''],
    [
      'an absent seccomp profile',
      at('restricted'),
      { spec: { securityContext: { runAsNonRoot: true } } },
      'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ],
    [
      'an unconfined seccomp profile',
      at('restricted'),
      container({ seccompProfile: { type: 'Unconfined' } }),
      'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    ['a pod at a version later than all known ones', at('restricted', 99), {}, ''],
  ]
  for (const [what, level, change, expected] of table) {
    it(`checks ${what}`, () => {
      assert.equal(detailsText(violationsOf(pod(change) as never, level)), expected)
    })
  }
})

describe('parsePolicy() for the labels of a namespace', () => {
  const defaults = { enforce: PRIVILEGED, audit: PRIVILEGED, warn: PRIVILEGED }
  const parse = (labels: Record<string, string>): ReturnType<typeof parsePolicy> =>
    parsePolicy(
      Object.fromEntries(Object.entries(labels).map(([name, value]) => [`pod-security.kubernetes.io/${name}`, value])),
      defaults,
    )

  it('uses the enforced level for warnings by default', () => {
    assert.deepEqual(parse({ enforce: 'baseline', 'enforce-version': 'v1.20' }).policy, {
      enforce: at('baseline', 20),
      audit: PRIVILEGED,
      warn: at('baseline', 20),
    })
    assert.deepEqual(parse({ enforce: 'baseline', warn: 'privileged' }).policy.warn, PRIVILEGED)
    assert.deepEqual(parse({ enforce: 'baseline', 'warn-version': 'v1.3' }).policy.warn, at('baseline', 3))
  })

  it('enforces the restricted level if the labels are invalid', () => {
    const { policy, errors } = parse({ enforce: 'x', audit: 'y', 'warn-version': 'v2.1', 'enforce-version': 'v1.01' })
    assert.deepEqual(policy, { enforce: at('restricted'), audit: PRIVILEGED, warn: PRIVILEGED })
    assert.deepEqual(
      errors.map(({ field, detail }) => `${field}: ${detail}`),
      [
        'metadata.labels[pod-security.kubernetes.io/enforce]: must be one of privileged, baseline, restricted',
        'metadata.labels[pod-security.kubernetes.io/enforce-version]: must be "latest" or "v1.x"',
        'metadata.labels[pod-security.kubernetes.io/audit]: must be one of privileged, baseline, restricted',
        'metadata.labels[pod-security.kubernetes.io/warn-version]: must be "latest" or "v1.x"',
      ],
    )
  })
})

function namespace(labels: Record<string, string>): object {
  const prefixed = Object.entries(labels).map(([name, value]) => [`pod-security.kubernetes.io/${name}`, value])
  return { metadata: { name: 'ns', labels: Object.fromEntries(prefixed) } }
}

async function warningsOf(write: SampleWrite, using = plugin): Promise<readonly string[]> {
  const { attributes, warnings } = sampleWrite(write)
  await run(using, attributes)
  return warnings
}

const ESCALATION =
  'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)'
const bad = pod(container({ allowPrivilegeEscalation: true }))

describe('PodSecurity admission', () => {
  const restricted = { namespaces: [namespace({ enforce: 'restricted' })] }

  it('rejects a pod that violates the enforced standard', async () => {
    const status = await refusalStatus(plugin, { resource: 'pods', object: bad, world: restricted })
    assert.equal(status?.code, 403)
    assert.equal(status?.message, `pods "p" is forbidden: violates PodSecurity "restricted:latest": ${ESCALATION}`)
    const pinned = { namespaces: [namespace({ enforce: 'restricted', 'enforce-version': 'v1.7' })] }
    assert.equal(await refusal(plugin, { resource: 'pods', object: bad, world: pinned }), undefined)
    const message = await refusal(plugin, { resource: 'pods', object: bad, world: {} })
    assert.equal(message, 'Internal error occurred: failed to lookup namespace "ns"')
  })

  it('warns about a pod that violates the standard in the warn label', async () => {
    const world = { namespaces: [namespace({ enforce: 'baseline', warn: 'restricted', 'warn-version': 'v1.30' })] }
    assert.deepEqual(await warningsOf({ resource: 'pods', object: bad, world }), [
      `would violate PodSecurity "restricted:v1.30": ${ESCALATION}`,
    ])
    assert.deepEqual(await warningsOf({ resource: 'pods', object: bad, world: { namespaces: [namespace({})] } }), [])
  })

  for (const [resource, object] of [
    ['deployments.apps', { metadata: { name: 'd' }, spec: { template: bad } }],
    ['replicationcontrollers', { metadata: { name: 'd' }, spec: { template: bad } }],
    ['jobs.batch', { metadata: { name: 'd' }, spec: { template: bad } }],
    ['cronjobs.batch', { metadata: { name: 'd' }, spec: { jobTemplate: { spec: { template: bad } } } }],
    ['podtemplates', { metadata: { name: 'd' }, template: bad }],
  ] as const) {
    it(`warns about the pod template of ${resource}, without a rejection`, async () => {
      assert.deepEqual(await warningsOf({ resource, object, world: restricted }), [
        `would violate PodSecurity "restricted:latest": ${ESCALATION}`,
      ])
      assert.deepEqual(await warningsOf({ resource, object, subresource: 'scale', world: restricted }), [])
    })
  }

  it('ignores a workload without a pod template', async () => {
    const object = { metadata: { name: 'd' }, spec: {} }
    assert.deepEqual(await warningsOf({ resource: 'replicationcontrollers', object, world: restricted }), [])
  })

  it('checks a pod again on updates of images and containers only', async () => {
    const update = (object: object, subresource = ''): Promise<string | undefined> =>
      refusal(plugin, { resource: 'pods', subresource, object, oldObject: bad, world: restricted })
    assert.equal(await update(bad), undefined)
    const other = pod({ container: { image: 'x', securityContext: { allowPrivilegeEscalation: true } } })
    assert.match((await update(other)) ?? '', /violates PodSecurity/)
    const debug = pod({
      ...container({ allowPrivilegeEscalation: true }),
      spec: { ephemeralContainers: [{ name: 'e' }] },
    })
    assert.match((await update(debug, 'ephemeralcontainers')) ?? '', /containers "c", "e" must set/)
    assert.equal(await update(other, 'status'), undefined)
  })

  it('exempts configured users, namespaces and runtime classes', async () => {
    const exempting = (exemptions: object): ReturnType<typeof createPodSecurity> =>
      createPodSecurity({ clock, exemptions })
    const classy = pod({ ...container({ allowPrivilegeEscalation: true }), spec: { runtimeClassName: 'vm' } })
    for (const exemptions of [{ usernames: ['alice'] }, { namespaces: ['ns'] }, { runtimeClasses: ['vm'] }]) {
      const write = { resource: 'pods', object: classy, world: restricted }
      assert.equal(await refusal(exempting(exemptions), write), undefined)
      const workload = { resource: 'deployments.apps', object: { metadata: {}, spec: { template: classy } } }
      assert.deepEqual(await warningsOf({ ...workload, world: restricted }, exempting(exemptions)), [])
    }
  })

  it('applies the configured defaults in namespaces without labels', async () => {
    const strict = createPodSecurity({
      clock,
      defaults: { enforce: at('restricted', 30), audit: PRIVILEGED, warn: PRIVILEGED },
    })
    const world = { namespaces: [{ metadata: { name: 'ns' } }] }
    assert.match((await refusal(strict, { resource: 'pods', object: bad, world })) ?? '', /"restricted:v1.30"/)
  })
})

describe('PodSecurity admission of a Namespace', () => {
  it('rejects invalid labels, unless they were invalid before', async () => {
    const broken = namespace({ enforce: 'x' })
    assert.equal(
      await refusal(plugin, { resource: 'namespaces', object: broken }),
      'Namespace "ns" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted',
    )
    const write = { resource: 'namespaces', object: broken }
    assert.equal(await refusal(plugin, { ...write, oldObject: broken }), undefined)
    assert.match((await refusal(plugin, { ...write, oldObject: namespace({}) })) ?? '', /is invalid/)
  })

  const named = (name: string, change: Change, uid?: string): object => {
    const { spec } = pod(change)
    const ownerReferences = uid === undefined ? [] : [{ uid, controller: true }]
    return { metadata: { name, namespace: 'ns', ownerReferences }, spec }
  }

  it('warns with the existing pods that violate the new policy', async () => {
    const pods = [
      named('z', { spec: { hostPID: true } }),
      named('a', { spec: { hostPID: true } }),
      named('m', { spec: { hostPID: true } }),
      named('b', container({ privileged: true }), 'u'),
      named('c', container({ privileged: true }), 'u'),
      named('fine', {}),
    ]
    const write = { resource: 'namespaces', object: namespace({ enforce: 'baseline' }), world: { pods } }
    assert.deepEqual(await warningsOf({ ...write, oldObject: namespace({}) }), [
      'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
      'a (and 2 other pods): host namespaces',
      'b (and 1 other pod): privileged',
    ])
    assert.deepEqual(await warningsOf({ ...write, oldObject: namespace({ enforce: 'baseline' }) }), [])
    assert.deepEqual(await warningsOf({ ...write, oldObject: namespace({ enforce: 'restricted' }) }), [])
  })

  it('checks at most 3000 existing pods', async () => {
    const pods = Array.from({ length: 3001 }, (_, at) => named(`p${at}`, {}))
    const object = namespace({ enforce: 'baseline' })
    assert.deepEqual(await warningsOf({ resource: 'namespaces', object, oldObject: namespace({}), world: { pods } }), [
      'new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods',
    ])
  })

  it('warns that labels of an exempt namespace have no effect', async () => {
    const exempt = createPodSecurity({ clock, exemptions: { namespaces: ['ns'] } })
    const object = namespace({ enforce: 'restricted', 'audit-version': 'v1.20', warn: 'baseline' })
    assert.deepEqual(await warningsOf({ resource: 'namespaces', object }, exempt), [
      'namespace "ns" is exempt from Pod Security, and the policy (enforce=restricted:latest, warn=baseline:latest) will be ignored',
    ])
    assert.deepEqual(await warningsOf({ resource: 'namespaces', object: namespace({}) }, exempt), [])
  })
})

describe('audit annotations of PodSecurity', () => {
  const namespace = (labels: Record<string, string>): object => ({
    metadata: {
      name: 'ns',
      labels: Object.fromEntries(
        Object.entries(labels).map(([name, value]) => [`pod-security.kubernetes.io/${name}`, value]),
      ),
    },
  })

  async function notes(
    labels: Record<string, string>,
    write: SampleWrite,
    tested = plugin,
  ): Promise<Record<string, string>> {
    const found: Record<string, string> = {}
    const annotate = (name: string, value: string): void => {
      found[name.replace('pod-security.kubernetes.io/', '')] = value
    }
    await refusal(tested, { ...write, annotate, world: { namespaces: [namespace(labels)] } })
    return found
  }

  const privileged = pod(container({ privileged: true }))
  const would = (level: string): string =>
    `would violate PodSecurity "${level}:latest": privileged (container "c" must not set securityContext.privileged=true)`

  it('contain the enforced policy, and violations of the audit policy', async () => {
    const write = { resource: 'pods', object: privileged }
    assert.deepEqual(await notes({}, write), { 'enforce-policy': 'privileged:latest' })
    assert.deepEqual(await notes({ audit: 'baseline' }, write), {
      'enforce-policy': 'privileged:latest',
      'audit-violations': would('baseline'),
    })
    assert.deepEqual(await notes({ enforce: 'baseline', audit: 'baseline' }, write), {
      'enforce-policy': 'baseline:latest',
      'audit-violations': would('baseline'),
    })
  })

  it('are absent for updates that need no check, except at the privileged level', async () => {
    const write = { resource: 'pods', object: privileged, oldObject: privileged }
    assert.deepEqual(await notes({ audit: 'baseline' }, write), {})
    assert.deepEqual(await notes({}, write), { 'enforce-policy': 'privileged:latest' })
  })

  it('contain violations in the pod template of a workload', async () => {
    const object = { metadata: { name: 'd' }, spec: { template: privileged } }
    assert.deepEqual(await notes({ audit: 'baseline' }, { resource: 'deployments.apps', object }), {
      'audit-violations': would('baseline'),
    })
    assert.deepEqual(await notes({ enforce: 'baseline' }, { resource: 'deployments.apps', object }), {})
  })

  it('contain the reason of an exemption', async () => {
    const exempt = createPodSecurity({
      clock,
      exemptions: { namespaces: ['other'], usernames: ['root'], runtimeClasses: ['kata'] },
    })
    const write = { resource: 'pods', object: privileged }
    const user = { name: 'root', uid: '', groups: [], extra: {} }
    const kata = pod({ spec: { runtimeClassName: 'kata' } })
    assert.deepEqual(await notes({}, { ...write, namespace: 'other' }, exempt), { exempt: 'namespace' })
    assert.deepEqual(await notes({}, { ...write, user }, exempt), { exempt: 'user' })
    assert.deepEqual(await notes({ enforce: 'baseline' }, { ...write, object: kata }, exempt), {
      exempt: 'runtimeClass',
    })
  })

  it('contain the errors of invalid namespace labels', async () => {
    const { error } = await notes({ audit: 'foo' }, { resource: 'pods', object: pod() })
    assert.equal(
      error,
      'Failed to parse policy: metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "foo": must be one of privileged, baseline, restricted',
    )
  })
})

describe('metrics of PodSecurity', () => {
  it('count evaluations by mode and decision, and exemptions', async () => {
    const metrics = createServerMeters()
    const defaults = { enforce: at('baseline', 30), audit: at('restricted'), warn: PRIVILEGED }
    const counted = createPodSecurity({ clock, defaults, exemptions: { usernames: ['root'] }, metrics })
    const world = { namespaces: [{ metadata: { name: 'ns' } }] }
    const evaluate = async (object: object, name = 'jane'): Promise<void> => {
      const { attributes } = sampleWrite({ resource: 'pods', object, world })
      const written = { ...attributes, user: { ...attributes.user, name } }
      await Promise.resolve(counted.validate!(written)).catch(() => undefined)
    }
    await evaluate(pod({ spec: { hostPID: true } }), 'root')
    await evaluate(pod({ spec: { hostPID: true } }))
    await evaluate(pod())
    assert.deepEqual(metrics.registry.render().match(/^pod_security_\S+ [1-9]$/gm), [
      'pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="baseline",policy_version="v1.30",request_operation="create",resource="pod",subresource=""} 1',
      'pod_security_evaluations_total{decision="deny",mode="audit",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 1',
      'pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="baseline",policy_version="v1.30",request_operation="create",resource="pod",subresource=""} 1',
      'pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""} 1',
    ])
  })
})
