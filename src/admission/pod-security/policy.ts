/**
 * Reads the Pod Security policy of a namespace from its labels: a level and a version for each of enforce, audit and
 * warn.
 */
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

export type Level = 'privileged' | 'baseline' | 'restricted'

/** From the most permissive to the strictest. */
export const LEVELS: readonly Level[] = ['privileged', 'baseline', 'restricted']

export type Mode = 'enforce' | 'audit' | 'warn'

export interface LevelVersion {
  readonly level: Level
  /** The minor version of Kubernetes whose checks apply; Infinity for `latest`. */
  readonly minor: number
}

export type Policy = Readonly<Record<Mode, LevelVersion>>

export const LATEST: number = Infinity

export const PRIVILEGED: LevelVersion = { level: 'privileged', minor: LATEST }

/** `restricted:latest`, `baseline:v1.24`. */
export function levelVersionText({ level, minor }: LevelVersion): string {
  return `${level}:${minor === LATEST ? 'latest' : `v1.${minor}`}`
}

export function sameLevelVersion(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && a.minor === b.minor
}

/** Positive if `a` is stricter. */
export function compareLevels(a: Level, b: Level): number {
  return LEVELS.indexOf(a) - LEVELS.indexOf(b)
}

export function isFullyPrivileged({ enforce, audit, warn }: Policy): boolean {
  return [enforce, audit, warn].every(({ level }) => level === 'privileged')
}

/** True if both admit the same pods: the version of the privileged level is irrelevant. */
export function isEquivalent(a: Policy, b: Policy): boolean {
  const same = (x: LevelVersion, y: LevelVersion): boolean =>
    (x.level === 'privileged' && y.level === 'privileged') || sameLevelVersion(x, y)
  return same(a.enforce, b.enforce) && same(a.audit, b.audit) && same(a.warn, b.warn)
}

export const PREFIX = 'pod-security.kubernetes.io/'

type Labels = Readonly<Record<string, string>>

export function labelOf(labels: Labels, name: string): string | undefined {
  const key = PREFIX + name
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}

export interface ParsedPolicy {
  /**
   * Present also with errors: an unreadable policy is enforced at its strictest and neither audited nor warned about.
   */
  readonly policy: Policy
  readonly errors: readonly FieldError[]
}

export function parseLevel(text: string): Level | undefined {
  return LEVELS.find((level) => level === text)
}

/** Undefined unless it is `latest` or `v1.x`. */
export function parseVersion(text: string): number | undefined {
  if (text === 'latest') return LATEST
  const found = /^v1\.(0|[1-9][0-9]{0,8})$/.exec(text)
  return found === null ? undefined : Number(found[1])
}

export const LEVEL_RULE: string = `must be one of ${LEVELS.join(', ')}`
export const VERSION_RULE = 'must be "latest" or "v1.x"'

/** `defaults` applies where a label is missing. */
export function parsePolicy(labels: Labels | undefined, defaults: Policy): ParsedPolicy {
  if (labels === undefined || Object.keys(labels).length === 0) return { policy: defaults, errors: [] }
  const errors: FieldError[] = []
  const enforce = parseMode(labels, 'enforce', { fallback: defaults.enforce, unreadable: 'restricted', errors })
  const audit = parseMode(labels, 'audit', { fallback: defaults.audit, unreadable: 'privileged', errors })
  const own = parseMode(labels, 'warn', { fallback: defaults.warn, unreadable: 'privileged', errors })
  return { policy: { enforce, audit, warn: followEnforce(labels, enforce, own) }, errors }
}

/** The warn level defaults to the enforced level. */
function followEnforce(labels: Labels, enforce: LevelVersion, warn: LevelVersion): LevelVersion {
  const enforced = labelOf(labels, 'enforce')
  const follows = labelOf(labels, 'warn') === undefined && enforced !== undefined && parseLevel(enforced) !== undefined
  if (!follows || compareLevels(enforce.level, warn.level) <= 0) return warn
  const ownVersion = labelOf(labels, 'warn-version') !== undefined
  return { level: enforce.level, minor: ownVersion ? warn.minor : enforce.minor }
}

interface ModeContext {
  readonly fallback: LevelVersion
  /** The level in place of an unreadable one. */
  readonly unreadable: Level
  readonly errors: FieldError[]
}

function parseMode(labels: Labels, mode: Mode, { fallback, unreadable, errors }: ModeContext): LevelVersion {
  const complain = (name: string, value: string, rule: string): void => {
    errors.push(fieldPath(`metadata.labels[${PREFIX}${name}]`).invalid(value, rule))
  }
  let { level, minor } = fallback
  const levelText = labelOf(labels, mode)
  if (levelText !== undefined) {
    const parsed = parseLevel(levelText)
    if (parsed === undefined) complain(mode, levelText, LEVEL_RULE)
    level = parsed ?? unreadable
  }
  const versionText = labelOf(labels, `${mode}-version`)
  if (versionText !== undefined) {
    const parsed = parseVersion(versionText)
    if (parsed === undefined) complain(`${mode}-version`, versionText, VERSION_RULE)
    minor = parsed ?? LATEST
  }
  return { level, minor }
}
