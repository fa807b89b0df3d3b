/**
 * Parses `--feature-gates A=true,B=false`, by upstream's rules and with upstream's texts (component-base/featuregate,
 * v1.36).
 */
import { parseBool } from './go-literals.ts'
import type { Kind } from './kinds.ts'

export interface GateSpec {
  readonly default: boolean
  readonly maturity: 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED'
  readonly locked?: boolean
}

export type GateSpecs = Readonly<Record<string, GateSpec>>

/** The requested value of each gate; `isEnabled` evaluates them. */
export type FeatureGates = ReadonlyMap<string, boolean>

const ALL: ReadonlyMap<string, GateSpec['maturity']> = new Map([
  ['AllAlpha', 'ALPHA'],
  ['AllBeta', 'BETA'],
])

/** The flag's kind for the gates in `known`. */
export function featureGates(known: GateSpecs): Kind<FeatureGates> {
  return {
    type: 'mapStringBool',
    hint: 'mapStringBool',
    plain: [''],
    parse: (text) =>
      new Map(
        text
          .split(',')
          .filter(Boolean)
          .map((pair) => parseGate(known, pair)),
      ),
    print: (gates) =>
      [...gates]
        .map(([name, on]) => `${name}=${on}`)
        .sort()
        .join(','),
    join: (before, next) => new Map([...before, ...next]),
    read(field) {
      if (typeof field !== 'object' || field === null) throw new Error('must be an object')
      return new Map(Object.entries(field).map(([name, on]) => parseGate(known, `${name}=${on}`)))
    },
    warnings: (gates) => [...gates].flatMap(([name, on]) => warning(known, name, on)),
  }
}

/** Whether gate `name` is on. Throws for a gate that is not in `known`: a mistake of the program. */
export function isEnabled(known: GateSpecs, gates: FeatureGates, name: string): boolean {
  const spec = specOf(known, name)
  if (spec === undefined) throw new Error(`Feature "${name}" is not registered`)
  const all = spec.maturity === 'ALPHA' ? 'AllAlpha' : spec.maturity === 'BETA' ? 'AllBeta' : undefined
  return gates.get(name) ?? (all === undefined || spec.locked ? undefined : gates.get(all)) ?? spec.default
}

/** The flag's usage text, with the gates people are meant to set. */
export function describeGates(known: GateSpecs): string {
  const lines = Object.entries(known)
    .filter(([, { maturity }]) => maturity === 'ALPHA' || maturity === 'BETA')
    .map(([name, spec]) => `${name}=true|false (${spec.maturity} - default=${spec.default})`)
  const all = [...ALL].map(([name, maturity]) => `${name}=true|false (${maturity} - default=false)`)
  const intro = 'A set of key=value pairs that describe feature gates for alpha/experimental features. Options are:'
  return [intro, ...[...lines, ...all].sort()].join('\n')
}

function parseGate(known: GateSpecs, pair: string): [string, boolean] {
  const at = pair.indexOf('=')
  const name = (at < 0 ? pair : pair.slice(0, at)).trim()
  if (at < 0) throw new Error(`missing bool value for ${name}`)
  const on = parseSwitch(name, pair.slice(at + 1).trim())
  if (ALL.has(name)) return [name, on]
  const spec = specOf(known, name)
  if (spec === undefined) throw new Error(`unrecognized feature gate: ${name}`)
  if (spec.locked && spec.default !== on) {
    throw new Error(`cannot set feature gate ${name} to ${on}, feature is locked to ${spec.default}`)
  }
  return [name, on]
}

function parseSwitch(name: string, text: string): boolean {
  try {
    return parseBool(text)
  } catch (cause) {
    throw new Error(`invalid value of ${name}=${text}, err: ${(cause as Error).message}`, { cause })
  }
}

function specOf(known: GateSpecs, name: string): GateSpec | undefined {
  return Object.hasOwn(known, name) ? known[name] : undefined
}

function warning(known: GateSpecs, name: string, on: boolean): string[] {
  const maturity = specOf(known, name)?.maturity
  if (maturity !== 'GA' && maturity !== 'DEPRECATED') return []
  const word = maturity === 'GA' ? 'GA' : 'deprecated'
  return [`Setting ${word} feature gate ${name}=${on}. It will be removed in a future release.`]
}
