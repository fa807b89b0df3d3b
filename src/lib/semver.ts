/** Parses and compares semantic versions (semver.org 2.0.0). */

export interface SemanticVersion {
  /** Major, minor, patch. */
  readonly numbers: readonly [bigint, bigint, bigint]
  /** `rc`, `1` of `-rc.1`; empty for a release. */
  readonly preRelease: readonly string[]
}

const NUMBER = '0|[1-9]\\d*'
const PRE_RELEASE = `(?:${NUMBER}|\\d*[a-zA-Z-][0-9a-zA-Z-]*)`
const BUILD = '[0-9a-zA-Z-]+'
const PATTERN = new RegExp(
  `^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})(?:-(${PRE_RELEASE}(?:\\.${PRE_RELEASE})*))?(?:\\+${BUILD}(?:\\.${BUILD})*)?$`,
)

/** Longer texts are no real versions; the limit keeps numbers small. */
const MAX_CHARACTERS = 256

/** Undefined if the text is not a semantic version. The part after `+` is irrelevant and dropped. */
export function parseSemanticVersion(text: string): SemanticVersion | undefined {
  const found = text.length > MAX_CHARACTERS ? null : PATTERN.exec(text)
  if (found === null) return undefined
  const [, major = '0', minor = '0', patch = '0', preRelease] = found
  return {
    numbers: [BigInt(major), BigInt(minor), BigInt(patch)],
    preRelease: preRelease === undefined ? [] : preRelease.split('.'),
  }
}

/** Negative when `a` comes before `b`, zero when neither does. A pre-release comes before its release. */
export function compareSemanticVersions(a: SemanticVersion, b: SemanticVersion): number {
  for (const at of [0, 1, 2] as const) {
    if (a.numbers[at] !== b.numbers[at]) return a.numbers[at] < b.numbers[at] ? -1 : 1
  }
  const [left, right] = [a.preRelease, b.preRelease]
  if (left.length === 0 || right.length === 0) return right.length - left.length
  for (const [at, part] of left.entries()) {
    const other = right[at]
    const order = other === undefined ? 1 : compareParts(part, other)
    if (order !== 0) return order
  }
  return left.length - right.length
}

/** Numbers by value and before words; words by their characters, which are ASCII. */
function compareParts(a: string, b: string): number {
  if (a === b) return 0
  const [first, second] = [isNumber(a), isNumber(b)]
  if (first !== second) return first ? -1 : 1
  if (first) return BigInt(a) < BigInt(b) ? -1 : 1
  return a < b ? -1 : 1
}

function isNumber(part: string): boolean {
  return /^\d+$/.test(part)
}
