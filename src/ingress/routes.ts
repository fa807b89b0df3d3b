/**
 * Matches requests to Ingress rules by host and path: Exact before Prefix, longest first. Where the Ingress API is
 * silent, matching follows ingress-nginx. Pure.
 */
import type { HTTPIngressPath, Ingress, IngressBackend } from '#apis/networking/v1.ts'
import { compileRegexp, type Regexp } from '#lib/regexp.ts'

import { oldestFirst } from './ages.ts'
import { type IngressOptions, readOptions } from './options.ts'

/** A Service port by number or name. */
export interface Backend {
  readonly namespace: string
  readonly service: string
  readonly port: number | string
}

export interface Route {
  readonly backend: Backend | undefined
  readonly options: IngressOptions
  /** The Ingress. */
  readonly from: string
  /** The groups of a regex path for the rewrite. */
  readonly groups: readonly (string | undefined)[]
}

interface PathRule {
  readonly kind: 'exact' | 'prefix' | 'text' | 'regex'
  readonly path: string
  readonly pattern: Regexp | undefined
  readonly backend: Backend | undefined
  readonly options: IngressOptions
  readonly from: string
}

export interface RouteTable {
  /** Rules by host, in order of precedence; the empty name is for other hosts. */
  readonly hosts: ReadonlyMap<string, readonly PathRule[]>
}

/** The oldest Ingress first: a later one does not replace its paths. Invalid regexes are skipped and reported. */
export function routeTable(
  ingresses: readonly Ingress[],
  settings: Readonly<Record<string, string>>,
  refuse: (ingress: Ingress, reason: string) => void = () => undefined,
): RouteTable {
  const hosts = new Map<string, PathRule[]>()
  for (const ingress of oldestFirst(ingresses)) {
    for (const { host, rule } of rulesOf(ingress, settings, (reason) => refuse(ingress, reason))) {
      const rules = hosts.get(host) ?? []
      const isTaken = rules.some(({ kind, path }) => kind === rule.kind && path === rule.path)
      if (!isTaken) hosts.set(host, [...rules, rule])
    }
  }
  return { hosts: new Map([...hosts].map(([host, rules]) => [host, rules.toSorted(byWeight)])) }
}

interface HostRule {
  readonly host: string
  readonly rule: PathRule
}

function rulesOf(
  { metadata, spec }: Ingress,
  settings: Readonly<Record<string, string>>,
  refuse: (reason: string) => void,
): HostRule[] {
  const { namespace = '', name = '', annotations = {} } = metadata
  const around = { options: readOptions(annotations, settings), from: `${namespace}/${name}`, namespace }
  const { rules = [], defaultBackend } = spec
  // For unmatched paths, or all if there are no rules.
  const rest = (host: string): HostRule[] =>
    defaultBackend === undefined
      ? []
      : [
          {
            host,
            rule: {
              ...around,
              kind: 'text',
              path: '/',
              pattern: undefined,
              backend: backendOf(namespace, defaultBackend),
            },
          },
        ]
  const named = rules.flatMap(({ host = '', http }) => {
    const own = (http?.paths ?? []).map((path) => pathRule(path, around))
    for (const each of own) if (typeof each === 'string') refuse(each)
    const usable = own.filter((each) => typeof each !== 'string').map((rule) => ({ host: host.toLowerCase(), rule }))
    return [...usable, ...rest(host.toLowerCase())]
  })
  return rules.length === 0 ? rest('') : named
}

/** Undefined: no route. */
export function routeFor({ hosts }: RouteTable, host: string, path: string): Route | undefined {
  for (const rule of rulesFor(hosts, host.toLowerCase())) {
    const groups = match(rule, path)
    if (groups !== undefined) return { backend: rule.backend, options: rule.options, from: rule.from, groups }
  }
  return undefined
}

/** Falls back to a one-label wildcard, then to rules without a host. */
function rulesFor(hosts: RouteTable['hosts'], host: string): readonly PathRule[] {
  const wildcard = `*${host.slice(host.indexOf('.'))}`
  return hosts.get(host) ?? (host.includes('.') ? hosts.get(wildcard) : undefined) ?? hosts.get('') ?? []
}

function match({ kind, path, pattern }: PathRule, requested: string): readonly (string | undefined)[] | undefined {
  if (kind === 'exact') return requested === path ? [] : undefined
  if (kind === 'regex') return pattern?.find(requested)
  if (kind === 'text') return requested.startsWith(path) ? [] : undefined
  const bare = path.endsWith('/') ? path.slice(0, -1) : path
  return requested === bare || requested.startsWith(`${bare}/`) ? [] : undefined
}

interface RuleSource {
  readonly options: IngressOptions
  readonly from: string
  readonly namespace: string
}

function pathRule({ path = '/', pathType, backend }: HTTPIngressPath, around: RuleSource): PathRule | string {
  const { options, from, namespace } = around
  const base = { path, backend: backendOf(namespace, backend), options, from }
  if (pathType === 'Exact' && !options.usesRegex) return { ...base, kind: 'exact', pattern: undefined }
  if (options.usesRegex) {
    try {
      // As nginx: anchored at the start, case-insensitive.
      return { ...base, kind: 'regex', pattern: compileRegexp(`(?i)^${path}`) }
    } catch (error) {
      return `Path "${path}" is no regular expression: ${(error as Error).message}`
    }
  }
  return { ...base, kind: pathType === 'Prefix' ? 'prefix' : 'text', pattern: undefined }
}

function backendOf(namespace: string, { service }: IngressBackend): Backend | undefined {
  if (service === undefined) return undefined
  const { name = '', number = 0 } = service.port
  return { namespace, service: service.name, port: name === '' ? number : name }
}

const WEIGHTS: Readonly<Record<PathRule['kind'], number>> = { exact: 0, regex: 1, prefix: 2, text: 2 }

/** Exact paths, regexes, then prefixes; longer ones first. Of equal length, a path element precedes a text prefix. */
function byWeight(one: PathRule, other: PathRule): number {
  const length = (path: string): number => (path.endsWith('/') ? path.length - 1 : path.length)
  return (
    WEIGHTS[one.kind] - WEIGHTS[other.kind] ||
    length(other.path) - length(one.path) ||
    Number(one.kind === 'text') - Number(other.kind === 'text')
  )
}
