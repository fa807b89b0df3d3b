/**
 * Refusal cases: invalid fields of a pod outside of containers and volumes, such as scheduling, termination and
 * security context.
 */
import { type Ours, printing, type Refusal, type Trial } from '../case.ts'

const term = (part: object): object => ({ labelSelector: { matchLabels: { a: 'b' } }, topologyKey: 'zone', ...part })
const nodeTerm = (part: object): object => ({
  requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [part] },
})
const podTerm = (part: object): object => ({ requiredDuringSchedulingIgnoredDuringExecution: [term(part)] })
const spread = (part: object): object => ({
  maxSkew: 1,
  topologyKey: 'zone',
  whenUnsatisfiable: 'DoNotSchedule',
  ...part,
})

function spec(why: string, members: Readonly<Record<string, unknown>>, ours?: Ours): Refusal {
  return {
    ...(ours && { ours }),
    why,
    set: Object.fromEntries(Object.entries(members).map(([name, value]) => [`/spec/${name}`, value])),
  }
}

export const podPlacement: readonly Refusal[] = [
  spec('the restart policy is unknown', { restartPolicy: 'Sometimes' }),
  spec('the dns policy is unknown', { dnsPolicy: 'Guess' }),
  spec('the dns policy None has no servers', { dnsPolicy: 'None' }),
  spec('there are too many name servers', { dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] } }),
  spec('a name server is not an address', { dnsConfig: { nameservers: ['one'] } }),
  spec('a search domain is none', { dnsConfig: { searches: ['a b'] } }),
  spec('a dns option has no name', { dnsConfig: { options: [{ value: 'x' }] } }),
  spec('the deadline is 0', { activeDeadlineSeconds: 0 }),
  spec('the node name has capitals', { nodeName: 'Node-1' }),
  spec('the hostname has a dot', { hostname: 'a.b' }),
  spec('the subdomain has capitals', { subdomain: 'A' }),
  spec('the service account has a space', { serviceAccountName: 'a b' }),
  spec('the service account is not there', { serviceAccountName: 'nobody' }),
  spec('the node selector is not a label', { nodeSelector: { 'a b': 'c' } }),
  spec('the operating system is unknown', { os: { name: 'beos' } }),
  spec('a Windows pod uses Linux fields', {
    os: { name: 'windows' },
    hostPID: true,
    securityContext: { fsGroup: 1, runAsUser: 1 },
  }),
  spec('a Linux pod uses Windows fields', {
    os: { name: 'linux' },
    securityContext: { windowsOptions: { runAsUserName: 'x' } },
  }),
  spec('the priority class does not exist', { priorityClassName: 'high' }),
  spec('the priority is set by hand', { priority: 7 }),
  spec('the preemption policy is unknown', { preemptionPolicy: 'Maybe' }),
  spec('the runtime class does not exist', { runtimeClassName: 'fast' }),
  spec('a host alias has no address', { hostAliases: [{ ip: '', hostnames: ['a'] }] }),
  spec('a host alias has a bad name', { hostAliases: [{ ip: '1.2.3.4', hostnames: ['a b'] }] }),
  spec('a host alias begins with zeros', { hostAliases: [{ ip: '1.2.003.4', hostnames: ['a'] }] }),
  spec('a readiness gate has no name', { readinessGates: [{ conditionType: '' }] }),
  spec('a scheduling gate has a space', { schedulingGates: [{ name: 'a b' }] }),
  spec('a repeated scheduling gate', { schedulingGates: [{ name: 'a' }, { name: 'a' }] }),
  spec('a gated pod has a node', { schedulingGates: [{ name: 'a' }], nodeName: 'node-1' }),
  spec('a toleration of everything has a value', { tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] }),
  spec('a toleration has no key and is equal', { tolerations: [{ operator: 'Equal', value: 'b' }] }),
  spec('a toleration key is none', { tolerations: [{ key: 'a b', operator: 'Exists' }] }),
  spec('a toleration operator is unknown', { tolerations: [{ key: 'a', operator: 'Like' }] }),
  spec('a toleration effect is unknown', { tolerations: [{ key: 'a', operator: 'Exists', effect: 'Explode' }] }),
  spec('a toleration ends without being of that effect', {
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 5 }],
  }),
  spec('a node affinity has no terms', {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
  }),
  spec('a node affinity operator is unknown', {
    affinity: { nodeAffinity: nodeTerm({ matchExpressions: [{ key: 'a', operator: 'Like', values: ['b'] }] }) },
  }),
  spec('a node affinity has no values', {
    affinity: { nodeAffinity: nodeTerm({ matchExpressions: [{ key: 'a', operator: 'In' }] }) },
  }),
  spec('a node affinity has values where none belong', {
    affinity: { nodeAffinity: nodeTerm({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }) },
  }),
  spec('a node affinity compares text', {
    affinity: { nodeAffinity: nodeTerm({ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['b', 'c'] }] }) },
  }),
  spec('a node affinity field is unknown', {
    affinity: { nodeAffinity: nodeTerm({ matchFields: [{ key: 'spec.x', operator: 'In', values: ['b'] }] }) },
  }),
  spec('a node affinity field has two values', {
    affinity: {
      nodeAffinity: nodeTerm({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a', 'b'] }] }),
    },
  }),
  spec('a node preference has no weight', {
    affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, preference: {} }] } },
  }),
  spec('a pod affinity has no topology', { affinity: { podAffinity: podTerm({ topologyKey: '' }) } }),
  spec('a pod affinity selector is unknown', {
    affinity: { podAffinity: podTerm({ labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } }) },
  }),
  spec('a pod affinity selector has no values', {
    affinity: { podAffinity: podTerm({ labelSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }) },
  }),
  spec('a pod affinity namespace is none', { affinity: { podAntiAffinity: podTerm({ namespaces: ['A'] }) } }),
  spec('a pod affinity matches a key it selects', {
    affinity: { podAffinity: podTerm({ matchLabelKeys: ['a'], mismatchLabelKeys: ['a'] }) },
  }),
  spec('a pod affinity matches keys without a selector', {
    affinity: { podAffinity: podTerm({ labelSelector: undefined, matchLabelKeys: ['b'] }) },
  }),
  spec('a pod preference is too heavy', {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 101, podAffinityTerm: term({}) }],
      },
    },
  }),
  spec('a spread has no skew', { topologySpreadConstraints: [spread({ maxSkew: 0 })] }),
  spec('a spread has no topology', { topologySpreadConstraints: [spread({ topologyKey: '' })] }),
  spec('a spread does the unknown', { topologySpreadConstraints: [spread({ whenUnsatisfiable: 'Panic' })] }),
  spec('a repeated spread', { topologySpreadConstraints: [spread({}), spread({ maxSkew: 2 })] }),
  spec('minDomains with ScheduleAnyway', {
    topologySpreadConstraints: [spread({ whenUnsatisfiable: 'ScheduleAnyway', minDomains: 2 })],
  }),
  spec('minDomains of 0', { topologySpreadConstraints: [spread({ minDomains: 0 })] }),
  spec('a spread has unknown policies', {
    topologySpreadConstraints: [spread({ nodeAffinityPolicy: 'A', nodeTaintsPolicy: 'B' })],
  }),
  spec('a spread matches keys without a selector', { topologySpreadConstraints: [spread({ matchLabelKeys: ['a'] })] }),
  spec('the group of files is negative', {
    securityContext: { fsGroup: -1, runAsUser: -1, runAsGroup: -1, supplementalGroups: [-1] },
  }),
  spec('the group policy is unknown', { securityContext: { fsGroupChangePolicy: 'Never' } }),
  spec('a sysctl is none', { securityContext: { sysctls: [{ name: 'a..b', value: '1' }] } }),
  spec('a repeated sysctl', {
    securityContext: {
      sysctls: [
        { name: 'a.b', value: '1' },
        { name: 'a.b', value: '2' },
      ],
    },
  }),
  spec('a sysctl of the host is set on the host network', {
    hostNetwork: true,
    securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] },
  }),
  spec('processes are shared with the host and each other', { hostPID: true, shareProcessNamespace: true }),
  spec('a user namespace on the host network', { hostUsers: false, hostNetwork: true }),
  spec('the host network hides a port', { hostNetwork: true, 'containers/0/ports/0/hostPort': 81 }),
  spec('overhead is set without a class', { overhead: { cpu: '1' } }),
  spec('the qualified hostname needs another', { hostnameOverride: 'A.b' }),
  spec('a device claim has no name', { resourceClaims: [{ name: '', resourceClaimName: 'x' }] }),
  spec(
    'a device claim has two sources',
    {
      resourceClaims: [{ name: 'a', resourceClaimName: 'x', resourceClaimTemplateName: 'y' }],
    },
    printing('{"name":"a","resourceClaimName":"x","resourceClaimTemplateName":"y"}'),
  ),
  spec('a device claim has no source', { resourceClaims: [{ name: 'a' }] }, printing('{"name":"a"}')),
  spec('pod resources are less than those of containers', { resources: { requests: { cpu: '500m' } } }),
  spec('pod resources are of an unknown kind', { resources: { requests: { 'example.com/gpu': '1' } } }),
  {
    why: 'the deletion cost is not a number',
    set: { '/metadata/annotations': { 'controller.kubernetes.io/pod-deletion-cost': 'much' } },
  },
  {
    why: 'the AppArmor annotation names no container',
    set: { '/metadata/annotations': { 'container.apparmor.security.beta.kubernetes.io/nobody': 'runtime/default' } },
  },
  {
    why: 'the seccomp annotation is unknown',
    set: { '/metadata/annotations': { 'seccomp.security.alpha.kubernetes.io/pod': 'strict' } },
  },
  { why: 'it is a mirror without a node', set: { '/metadata/annotations': { 'kubernetes.io/config.mirror': 'x' } } },
]

export const placementTaken: readonly Trial[] = [
  spec('the grace period is negative', { terminationGracePeriodSeconds: -1 }),
  spec('a pull secret has no name', { imagePullSecrets: [{}] }),
]
