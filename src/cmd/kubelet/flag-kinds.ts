/** Flag types of the kubelet; each parses the value of a KubeletConfiguration field. */
import type { Taint } from '#apis/core/v1.ts'
import { TAINT_EFFECTS } from '#kubelet/configuration/validation.ts'
import type { Kind } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { canonicalQuantity } from '#meta/quantity.ts'
import { canonicalIp } from '#meta/validation/addresses.ts'
import { labelValue, qualifiedName } from '#meta/validation/names.ts'

type Words = Readonly<Record<string, string>>

export const address: Kind<string> = {
  type: 'ip',
  hint: 'ip',
  parse: (text) => {
    if (text !== '' && canonicalIp(text) === undefined) throw new Error(`${goQuote(text)} is not a valid IP address`)
    return text
  },
  print: String,
  plain: [''],
}

function wordsKind(separator: '=' | '<', splits: boolean): Kind<Words> {
  return {
    type: 'mapStringString',
    hint: 'mapStringString',
    parse(text) {
      const pairs = splits ? text.split(',').filter((pair) => pair !== '') : [text]
      return Object.fromEntries(pairs.map((pair) => splitPair(pair, separator)))
    },
    print: (words) =>
      Object.entries(words)
        .map(([key, value]) => `${key}${separator}${value}`)
        .sort()
        .join(','),
    plain: [''],
    join: (before, next) => ({ ...before, ...next }),
  }
}

function splitPair(pair: string, separator: string): [key: string, value: string] {
  const at = pair.indexOf(separator)
  if (at < 0) throw new Error(`malformed pair, expect string${separator}string`)
  return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
}

/** `memory=1Gi,cpu=100m`. */
export const words: Kind<Words> = wordsKind('=', true)
/** `memory.available<100Mi`. */
export const thresholds: Kind<Words> = wordsKind('<', true)
/** One pair per flag. */
export const pair: Kind<Words> = wordsKind('=', false)

/** `a:1,b:2`: headers. */
export const headers: Kind<Readonly<Record<string, readonly string[]>>> = {
  type: 'colonSeparatedMultimapStringString',
  hint: 'colonSeparatedMultimapStringString',
  parse(text) {
    const pairs = text.split(',').filter((one) => one !== '')
    const split = pairs.map((one) => {
      const at = one.indexOf(':')
      if (at < 0) throw new Error('malformed pair, expect string:string')
      return [one.slice(0, at).trim(), one.slice(at + 1).trim()] as const
    })
    const grouped = Map.groupBy(split, ([name]) => name)
    return Object.fromEntries([...grouped].map(([name, all]) => [name, all.map(([, value]) => value)]))
  },
  print: (all) =>
    Object.entries(all)
      .flatMap(([name, values]) => values.map((value) => `${name}:${value}`))
      .sort()
      .join(','),
  plain: [''],
  join: (before, next) => ({ ...before, ...next }),
}

/** `key=value:NoSchedule`, separated by commas; the last flag wins. */
export const taints: Kind<readonly Taint[]> = {
  type: '[]v1.Taint',
  hint: '[]v1.Taint',
  parse: (text) => (text === '' ? [] : parseTaints(text.split(','))),
  print: (all) => all.map(({ key, value = '', effect }) => `${key}=${value}:${effect}`).join(','),
  plain: [''],
}

function parseTaints(specs: readonly string[]): Taint[] {
  const all = specs.filter((spec) => !spec.endsWith('-')).map(parseTaint)
  for (const [at, { key, value = '', effect }] of all.entries()) {
    if (!all.slice(0, at).some((other) => other.key === key && other.effect === effect)) continue
    throw new Error(`duplicated taints with the same key and effect: {${key} ${value} ${effect} <nil>}`)
  }
  return all
}

function parseTaint(spec: string): Taint {
  const refuse = (...why: readonly string[]): never => {
    throw new Error([`invalid taint spec: ${spec}`, ...why].join(', '))
  }
  const [pairText = '', effect, ...more] = spec.split(':')
  if (more.length > 0) return refuse()
  if (effect !== undefined && !TAINT_EFFECTS.includes(effect)) {
    throw new Error(`invalid taint effect: ${effect}, unsupported taint effect`)
  }
  const [key = '', value, ...rest] = effect === undefined ? [pairText] : pairText.split('=')
  if (rest.length > 0) return refuse()
  const wrong = [...(value === undefined ? [] : labelValue(value))]
  if (wrong.length > 0) return refuse(wrong.join('; '))
  const badKey = qualifiedName(key)
  if (badKey.length > 0) return refuse(badKey.join('; '))
  if (effect === undefined) return refuse()
  return { key, effect, ...(value !== undefined && value !== '' && { value }) }
}

export interface ReservedMemory {
  readonly numaNode: number
  readonly limits: Words
}

/** `0:memory=1Gi,hugepages-1Gi=2Gi`; repeated flags add up. */
export const reservedMemory: Kind<readonly ReservedMemory[]> = {
  type: 'reserved-memory',
  hint: 'reserved-memory',
  parse: (text) => (text === '' ? [] : text.split(';').map(parseReservation)),
  print: (all) =>
    all
      .map(({ numaNode, limits }) => `${numaNode}:${words.print(limits)}`)
      .sort()
      .join(','),
  plain: [''],
  join: (before, next) => [...before, ...next],
}

function parseReservation(text: string): ReservedMemory {
  const [node = '', limits, ...rest] = text.split(':')
  if (limits === undefined || rest.length > 0) {
    throw new Error(
      `the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got ${text}`,
    )
  }
  if (!/^-?\d+$/.test(node)) throw new Error(`failed to convert the NUMA node ID, expected integer, got ${node}`)
  const entries = limits.split(',').map((one): [string, string] => {
    const [name = '', quantity, ...more] = one.split('=')
    if (quantity === undefined || more.length > 0) {
      throw new Error(`the reserved limit has incorrect value, expected type=quantity, got ${one}`)
    }
    if (name !== 'memory' && !name.startsWith('hugepages-')) {
      throw new Error(`memory type conversion error, unknown type: ${goQuote(name)}`)
    }
    return [name, quantityOf(quantity)]
  })
  return { numaNode: Number(node), limits: Object.fromEntries(entries) }
}

function quantityOf(text: string): string {
  try {
    return canonicalQuantity(text)
  } catch (cause) {
    throw new Error(`failed to parse the quantity: ${text}`, { cause })
  }
}
