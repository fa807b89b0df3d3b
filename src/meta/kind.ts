/** The names of API types: group, version, kind and resource, with their text forms and the order of versions. */
import { compareText } from '#lib/go/text.ts'

export interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
}

export interface GroupKind {
  readonly group: string
  readonly kind: string
}

export interface GroupResource {
  readonly group: string
  /** Plural and lower-case: `pods`. */
  readonly resource: string
}

export interface GroupVersionKind extends GroupVersion, GroupKind {}

export interface GroupVersionResource extends GroupVersion, GroupResource {}

/** Parses an `apiVersion`: `v1`, `apps/v1`. Empty text and `/` yield empty parts; throws for more than one slash. */
export function parseApiVersion(text: string): GroupVersion {
  if (text === '' || text === '/') return { group: '', version: '' }
  const parts = text.split('/')
  if (parts.length > 2) throw new Error(`unexpected GroupVersion string: ${text}`)
  return parts.length === 1 ? { group: '', version: text } : { group: parts[0] as string, version: parts[1] as string }
}

/** Formats an `apiVersion`. */
export function apiVersionOf({ group, version }: GroupVersion): string {
  return group === '' ? version : `${group}/${version}`
}

/** The type of an object. An unreadable apiVersion counts as empty, as in upstream. */
export function kindOf(object: {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
}): GroupVersionKind {
  const apiVersion = object.apiVersion ?? ''
  const readable = apiVersion.indexOf('/') === apiVersion.lastIndexOf('/')
  return { ...parseApiVersion(readable ? apiVersion : ''), kind: object.kind ?? '' }
}

/** `deployments.apps`, or `pods` in the core group: the form of a resource in messages. */
export function groupResourceText({ group, resource }: GroupResource): string {
  return group === '' ? resource : `${resource}.${group}`
}

/** `Deployment.apps`, or `Pod` in the core group: the form of a kind in messages. */
export function groupKindText({ group, kind }: GroupKind): string {
  return group === '' ? kind : `${kind}.${group}`
}

/** `apps/v1, Kind=Deployment`. The core group keeps its slash: `/v1, Kind=Pod`. Usable as a key of a Map. */
/** `core.ConfigMap`: upstream's name of the internal type, for some error texts. */
export function internalTypeOf({ group, kind }: GroupKind): string {
  return `${group === '' ? 'core' : group.split('.')[0]}.${kind}`
}

export function kindKey({ group, version, kind }: GroupVersionKind): string {
  return `${group}/${version}, Kind=${kind}`
}

/** `apps/v1, Resource=deployments`. Usable as a key of a Map. */
export function resourceKey({ group, version, resource }: GroupVersionResource): string {
  return `${group}/${version}, Resource=${resource}`
}

/** Parses `deployments.apps` or `pods`; the group follows the first dot. */
export function parseGroupResource(text: string): GroupResource {
  const [resource, group] = splitAtDot(text)
  return { group, resource }
}

/** Parses `Deployment.apps` or `Pod`. */
export function parseGroupKind(text: string): GroupKind {
  const [kind, group] = splitAtDot(text)
  return { group, kind }
}

/** The meanings of `deployments.v1.apps`: with two or more dots the second part may be a version. */
export function parseResourceArg(text: string): {
  readonly full?: GroupVersionResource
  readonly short: GroupResource
} {
  const short = parseGroupResource(text)
  const [version, group] = splitAtDot(short.group)
  return text.split('.').length < 3 ? { short } : { full: { resource: short.resource, version, group }, short }
}

const kubeVersion = /^v([0-9]+)(?:(alpha|beta)([0-9]+))?$/

interface KubeVersion {
  readonly stability: number
  readonly major: number
  readonly minor: number
}

/**
 * Compares versions by preference, better ones greater: GA over beta over alpha, then the higher number; other names
 * come last, in reverse alphabetical order (`foo1` before `foo10`).
 */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0
  const left = parseKubeVersion(a)
  const right = parseKubeVersion(b)
  if (left === undefined && right === undefined) return Math.sign(compareText(b, a))
  if (left === undefined || right === undefined) return left === undefined ? -1 : 1
  return left.stability - right.stability || left.major - right.major || left.minor - right.minor
}

/** True for a GA version. */
export function isStable(version: string): boolean {
  return parseKubeVersion(version)?.stability === 2
}

function parseKubeVersion(text: string): KubeVersion | undefined {
  const match = kubeVersion.exec(text)
  if (match === null) return undefined
  const stability = match[2] === undefined ? 2 : match[2] === 'beta' ? 1 : 0
  const major = Number(match[1])
  const minor = Number(match[3] ?? 0)
  return major <= Number.MAX_SAFE_INTEGER && minor <= Number.MAX_SAFE_INTEGER ? { stability, major, minor } : undefined
}

function splitAtDot(text: string): [before: string, after: string] {
  const dot = text.indexOf('.')
  return dot < 0 ? [text, ''] : [text.slice(0, dot), text.slice(dot + 1)]
}
