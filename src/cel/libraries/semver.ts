/** The CEL library of semantic versions, version 1. It accepts the same texts as the Go library that upstream uses. */
import { goQuote } from '#lib/go/text.ts'
import { compareSemanticVersions, type SemanticVersion } from '#lib/semver.ts'

import { estimateRead, readFirst } from '../cost/costs.ts'
import { defineLibrary, free, member, type Library, type Overload } from '../library.ts'
import { BOOL, INT, STRING, opaque } from '../type.ts'
import { Failure, OpaqueValue, intOf, type Result, type Value } from '../value.ts'

const SEMVER = opaque('kubernetes.Semver')

class SemverValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Semver'
  readonly version: SemanticVersion
  readonly build: string
  constructor(version: SemanticVersion, build: string) {
    super()
    this.version = version
    this.build = build
  }
  /** Builds do not count. */
  equals(other: SemverValue): boolean {
    return compareSemanticVersions(this.version, other.version) === 0
  }
  override toString(): string {
    const { numbers, preRelease } = this.version
    const suffix = preRelease.length === 0 ? '' : `-${preRelease.join('.')}`
    return `${numbers.join('.')}${suffix}${this.build}`
  }
}

class Refusal extends Error {}

function parse(text: string): SemverValue {
  if (text === '') throw new Refusal('Version string empty')
  const [major, minor, rest] = splitThree(text)
  if (major === undefined || minor === undefined || rest === undefined) {
    throw new Refusal('No Major.Minor.Patch elements found')
  }
  const plus = rest.indexOf('+')
  const numbered = plus < 0 ? rest : rest.slice(0, plus)
  const dash = numbered.indexOf('-')
  const preRelease = dash < 0 ? [] : numbered.slice(dash + 1).split('.')
  const numbers = [
    number('major', major),
    number('minor', minor),
    number('patch', dash < 0 ? numbered : numbered.slice(0, dash)),
  ]
  for (const part of preRelease) checkPreRelease(part)
  if (plus >= 0) for (const part of rest.slice(plus + 1).split('.')) checkBuild(part)
  const version = { numbers: numbers as unknown as SemanticVersion['numbers'], preRelease }
  return new SemverValue(version, plus < 0 ? '' : rest.slice(plus))
}

/** At the first two dots. */
function splitThree(text: string): (string | undefined)[] {
  const [major, minor, ...rest] = text.split('.')
  return [major, minor, rest.length === 0 ? undefined : rest.join('.')]
}

function number(name: string, digits: string): bigint {
  const quoted = goQuote(digits)
  if (!/^[0-9]*$/.test(digits)) throw new Refusal(`Invalid character(s) found in ${name} number ${quoted}`)
  if (/^0./.test(digits)) {
    throw new Refusal(
      `${name.charAt(0).toUpperCase()}${name.slice(1)} number must not contain leading zeroes ${quoted}`,
    )
  }
  return unsigned(digits)
}

function unsigned(digits: string): bigint {
  const failed = (why: string): Refusal => new Refusal(`strconv.ParseUint: parsing ${goQuote(digits)}: ${why}`)
  if (digits === '') throw failed('invalid syntax')
  if (digits.length > 20 || BigInt(digits) >= 2n ** 64n) throw failed('value out of range')
  return BigInt(digits)
}

function checkPreRelease(part: string): void {
  if (part === '') throw new Refusal('Prerelease is empty')
  if (/^[0-9]+$/.test(part)) {
    if (/^0./.test(part)) {
      throw new Refusal(`Numeric PreRelease version must not contain leading zeroes ${goQuote(part)}`)
    }
    unsigned(part)
  } else if (!/^[0-9A-Za-z-]+$/.test(part)) {
    throw new Refusal(`Invalid character(s) found in prerelease ${goQuote(part)}`)
  }
}

function checkBuild(part: string): void {
  if (part === '') throw new Refusal('Build meta data is empty')
  if (!/^[0-9A-Za-z-]+$/.test(part)) {
    throw new Refusal(`Invalid character(s) found in build meta data ${goQuote(part)}`)
  }
}

/** `v1`, `1.2`, `01.2.3`: what people write. */
function normalize(text: string): string {
  const parts = splitThree(text.replace(/^v/, ''))
    .filter((part): part is string => part !== undefined)
    .map((part) => (part.length > 1 ? part.replace(/^0+/, '').replace(/^(?![0-9])/, '0') : part))
  if (parts.length < 3 && /[+-]/.test(parts.at(-1) as string)) {
    throw new Refusal('short version cannot contain PreRelease/Build meta data')
  }
  while (parts.length < 3) parts.push('0')
  return parts.join('.')
}

/** Fails for text that is none. */
export function toSemver(text: string, isLenient: Value): SemverValue | Failure {
  try {
    return parse(isLenient === true ? normalize(text) : text)
  } catch (error) {
    if (error instanceof Refusal) return new Failure(error.message)
    throw error
  }
}

const isSemver = (text: string, isLenient: Value): boolean => !(toSemver(text, isLenient) instanceof Failure)

const order = (a: SemverValue, b: SemverValue): number => Math.sign(compareSemanticVersions(a.version, b.version))

const reading = { cost: readFirst, dynamicCost: readFirst, estimate: estimateRead }

const part = (id: string, at: 0 | 1 | 2): Overload[] => [
  member(id, [SEMVER], INT, {
    evaluate: ({ version }: SemverValue): Result => intOf(BigInt.asIntN(64, version.numbers[at])),
  }),
]

export const semver: Library = defineLibrary('kubernetes.Semver', {
  semver: [
    free('string_to_semver', [STRING], SEMVER, { ...reading, evaluate: toSemver }),
    free('string_bool_to_semver', [STRING, BOOL], SEMVER, { ...reading, evaluate: toSemver }),
  ],
  isSemver: [
    free('is_semver_string', [STRING], BOOL, { ...reading, evaluate: isSemver }),
    free('is_semver_string_bool', [STRING, BOOL], BOOL, { ...reading, evaluate: isSemver }),
  ],
  isGreaterThan: [
    member('semver_is_greater_than', [SEMVER, SEMVER], BOOL, {
      evaluate: (a: SemverValue, b: SemverValue) => order(a, b) > 0,
    }),
  ],
  isLessThan: [
    member('semver_is_less_than', [SEMVER, SEMVER], BOOL, {
      evaluate: (a: SemverValue, b: SemverValue) => order(a, b) < 0,
    }),
  ],
  compareTo: [member('semver_compare_to', [SEMVER, SEMVER], INT, { evaluate: order })],
  major: part('semver_major', 0),
  minor: part('semver_minor', 1),
  patch: part('semver_patch', 2),
})
