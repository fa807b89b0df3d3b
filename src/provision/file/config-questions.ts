/**
 * The questions of `build config` in RKE's order, without those about Docker. A generator yields questions and receives
 * answers, without a terminal. A question is repeated after an invalid answer, so that the result is a valid cluster.
 */
import { closest } from '#lib/nearest.ts'

import { NETWORK_PLUGINS, type Role } from '../cluster.ts'
import { dnsAddress } from './cluster-defaults.ts'
import type { Draft } from './config-text.ts'
import { isDomain, isHost, isIp, isRange } from './field-checks.ts'

export interface Question {
  /** RKE's wording. */
  readonly text: string
  /** Used for an empty answer. */
  readonly byDefault: string
  /** The problem with the previous answer. */
  readonly complaint?: string
}

/** Yields questions, receives answers and returns the draft. */
export type Questions<T> = Generator<Question, T, string>

export function* askCluster(): Questions<Draft> {
  const keyPath = yield* ask('Cluster Level SSH Private Key Path', '~/.ssh/id_rsa')
  const count = Number(yield* ask('Number of Hosts', '1', isCount))
  const nodes: Draft[] = []
  for (let index = 1; index <= count; index++) nodes.push(yield* askNode(index, nodes))
  const plugin = yield* askOne('Network Plugin Type', NETWORK_PLUGINS, 'canal')
  const strategy = yield* askOne('Authentication Strategy', ['x509', 'x509|webhook'], 'x509')
  const mode = yield* askOne('Authorization Mode', ['rbac', 'none'], 'rbac')
  const domain = yield* ask('Cluster domain', 'cluster.local', isDomain)
  const range = yield* ask('Service Cluster IP Range', '10.43.0.0/16', isRange)
  const pods = yield* ask('Cluster Network CIDR', '10.42.0.0/16', isRange)
  const dns = yield* ask('Cluster DNS Service IP', dnsAddress(range), isIp)
  const addons = yield* askAddons()
  return {
    nodes,
    ssh_key_path: keyPath,
    network: { plugin },
    authentication: { strategy },
    authorization: { mode },
    services: {
      'kube-api': { service_cluster_ip_range: range },
      'kube-controller': { cluster_cidr: pods, service_cluster_ip_range: range },
      kubelet: { cluster_domain: domain, cluster_dns_server: dns },
    },
    addons_include: addons,
  }
}

/** The questions for each host before its roles: key, wording, default, rule. */
const HOST_QUESTIONS: readonly (readonly [
  key: string,
  text: string,
  byDefault: string,
  check?: (value: string) => string | undefined,
])[] = [
  ['port', 'SSH Port of host', '22', isPort],
  ['ssh_key_path', 'SSH Private Key Path of host', ''],
  ['user', 'SSH User of host', 'ubuntu'],
]

function* askNode(index: number, before: readonly Draft[]): Questions<Draft> {
  const known = new Set(before.map(({ address }) => address))
  const address = yield* ask(`SSH Address of host (${index})`, '', (value) => {
    if (value === '') return 'A host needs an address'
    return known.has(value) ? `"${value}" is another host already` : isHost(value)
  })
  const answers: [string, string][] = [['address', address]]
  for (const [key, text, byDefault, check] of HOST_QUESTIONS) {
    const answer = yield* ask(`${text} (${index})`, byDefault, check)
    if (answer !== '') answers.push([key, answer])
  }
  const role = yield* askRoles(index)
  const name = yield* ask(`Override Hostname of host (${index})`, '', optional(isDomain))
  const internal = yield* ask(`Internal IP of host (${index})`, '', optional(isHost))
  return {
    ...Object.fromEntries(answers),
    role,
    ...(name === '' ? {} : { hostname_override: name }),
    ...(internal === '' ? {} : { internal_address: internal }),
  }
}

function* askRoles(index: number): Questions<Role[]> {
  const kinds: readonly (readonly [Role, string, string])[] = [
    ['controlplane', 'a Control Plane', 'y'],
    ['worker', 'a Worker', 'n'],
    ['etcd', 'an etcd', 'n'],
  ]
  for (;;) {
    const role: Role[] = []
    for (const [kind, noun, byDefault] of kinds) {
      if (yield* askWhether(`Is host (${index}) ${noun} host (y/n)?`, byDefault)) role.push(kind)
    }
    if (role.length > 0) return role
  }
}

function* askAddons(): Questions<string[]> {
  const found: string[] = []
  const first = 'Add addon manifest URLs or YAML files'
  while (yield* askWhether(found.length === 0 ? first : 'Add another addon', 'no')) {
    const answer = yield* ask('Enter the Path or URL for the manifest', '')
    if (answer !== '') found.push(answer)
  }
  return found
}

function* ask(text: string, byDefault: string, check?: (value: string) => string | undefined): Questions<string> {
  let complaint: string | undefined
  for (;;) {
    const answer = (yield { text, byDefault, ...(complaint === undefined ? {} : { complaint }) }).trim()
    const value = answer === '' ? byDefault : answer
    complaint = check?.(value)
    if (complaint === undefined) return value
  }
}

function* askOne(text: string, known: readonly string[], byDefault: string): Questions<string> {
  return yield* ask(`${text} (${known.join(', ')})`, byDefault, (value) => {
    if (known.includes(value)) return undefined
    const near = closest(value, known)
    return `"${value}" is none of these${near === undefined ? '' : `; did you mean "${near}"?`}`
  })
}

/** Whole words only: RKE matched any answer that contained "n" or "y". */
function* askWhether(text: string, byDefault: string): Questions<boolean> {
  const answer = yield* ask(text, byDefault, (value) =>
    /^(y|yes|n|no)$/i.test(value) ? undefined : `"${value}" is neither yes nor no`,
  )
  return /^y/i.test(answer)
}

function optional(check: (value: string) => string | undefined): (value: string) => string | undefined {
  return (value) => (value === '' ? undefined : check(value))
}

function isCount(value: string): string | undefined {
  return /^[1-9]\d{0,3}$/.test(value) ? undefined : `"${value}" is not a number of hosts`
}

function isPort(value: string): string | undefined {
  return /^\d{1,5}$/.test(value) && Number(value) > 0 && Number(value) < 65_536 ? undefined : `"${value}" is not a port`
}
