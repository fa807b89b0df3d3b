/**
 * Writes nft scripts for a whole table or a difference. Pure. The scripts contain no text from users except for letters
 * of names in comments.
 */
import { type Cidr, formatCidr } from '#lib/net/cidr.ts'

import type { Family } from './pod-facts.ts'
import type { PortRange } from './policy.ts'
import type { ChainState, Match, Rule, SetState, SetType, Table, TableChanges, Verdict } from './table.ts'

/** Both address families. */
export const NFT_FAMILY = 'inet'
/** Longer lines are not faster, and harder to read. */
const ELEMENTS_OF_A_LINE = 500
/** nft allows 128 bytes. */
const COMMENT_CHARS = 100

/** Deletes the old table in the same transaction, so that there is no moment without rules. */
export function wholeScript(name: string, { sets, chains }: Pick<Table, 'sets' | 'chains'>): string {
  const at = `${NFT_FAMILY} ${name}`
  return lines([
    `add table ${at}`,
    `delete table ${at}`,
    `add table ${at}`,
    ...[...sets].map(([set, state]) => newSet(at, set, state)),
    ...[...chains].map(([chain, state]) => newChain(at, chain, state)),
    ...[...chains].flatMap(([chain, { rules }]) => newRules(at, chain, rules)),
    ...[...sets].flatMap(([set, { elements }]) => addElements(at, set, [...elements])),
  ])
}

/** Empty without a difference. Ordered so that nothing is referenced before its creation or after its deletion. */
export function changeScript(
  name: string,
  { sets, chains }: Pick<Table, 'sets' | 'chains'>,
  touched: TableChanges,
): string {
  const at = `${NFT_FAMILY} ${name}`
  const madeSets = [...touched.sets].flatMap(([set]) => entry(sets, set))
  const goneSets = [...touched.sets.keys()].filter((set) => !sets.has(set))
  const changedChains = [...touched.chains].flatMap(([chain]) => entry(chains, chain))
  const newChains = changedChains.filter(([chain]) => touched.chains.get(chain) === undefined)
  const goneChains = [...touched.chains].flatMap(([chain, before]) =>
    before !== undefined && !chains.has(chain) ? [chain] : [],
  )
  const elements = [...touched.elements].flatMap(([set, before]) => {
    const state = sets.get(set)
    return state === undefined ? [] : [{ set, ...elementChanges(state, before) }]
  })
  return lines([
    ...madeSets.map(([set, state]) => newSet(at, set, state)),
    ...newChains.map(([chain, state]) => newChain(at, chain, state)),
    ...changedChains.flatMap(([chain, { rules }]) => [`flush chain ${at} ${chain}`, ...newRules(at, chain, rules)]),
    ...elements.flatMap(({ set, gone }) => removeElements(at, set, gone)),
    ...elements.flatMap(({ set, added }) => addElements(at, set, added)),
    // Chains that reference each other must be flushed before the first deletion.
    ...goneChains.map((chain) => `flush chain ${at} ${chain}`),
    ...goneChains.map((chain) => `delete chain ${at} ${chain}`),
    ...goneSets.flatMap((set) => (touched.sets.get(set) === undefined ? [] : [`delete set ${at} ${set}`])),
  ])
}

const entry = <T>(map: ReadonlyMap<string, T>, name: string): readonly (readonly [string, T])[] => {
  const found = map.get(name)
  return found === undefined ? [] : [[name, found]]
}

const lines = (texts: readonly string[]): string => texts.map((line) => `${line}\n`).join('')

function elementChanges(
  { elements }: SetState,
  before: ReadonlyMap<string, string | undefined>,
): { readonly gone: readonly string[]; readonly added: readonly (readonly [string, string])[] } {
  const changed = [...before].filter(([element, value]) => elements.get(element) !== value)
  return {
    gone: changed.flatMap(([element, value]) => (value === undefined ? [] : [element])),
    added: changed.flatMap(([element]) => entry(elements, element)),
  }
}

const ADDRESS: Readonly<Record<Family, string>> = { 4: 'ipv4_addr', 6: 'ipv6_addr' }
const IP: Readonly<Record<Family, string>> = { 4: 'ip', 6: 'ip6' }
const SIDE = { source: 'saddr', destination: 'daddr' } as const

const SET_TYPE: Readonly<Record<SetType, (address: string) => string>> = {
  address: (address) => `type ${address};`,
  pair: (address) => `type ${address} . ${address};`,
  named: (address) => `type ${address} . inet_proto . inet_service;`,
  blocks: (address) => `type ${address}; flags interval;`,
  verdicts: (address) => `type ${address} : verdict;`,
}

function newSet(at: string, name: string, { family, type }: SetState): string {
  return `add ${type === 'verdicts' ? 'map' : 'set'} ${at} ${name} { ${SET_TYPE[type](ADDRESS[family])} }`
}

function newChain(at: string, name: string, { priority, comment = '' }: ChainState): string {
  const hook = priority === undefined ? '' : ` type filter hook forward priority ${priority}; policy accept;`
  const texts = comment.replaceAll(/[^\w./-]/g, '').slice(0, COMMENT_CHARS)
  const text = `${hook}${texts === '' ? '' : ` comment "${texts}";`}`
  return `add chain ${at} ${name}${text === '' ? '' : ` {${text} }`}`
}

function newRules(at: string, chain: string, rules: readonly Rule[]): readonly string[] {
  return rules.map((rule) => `add rule ${at} ${chain} ${ruleText(rule)}`)
}

function addElements(at: string, set: string, elements: readonly (readonly [string, string])[]): readonly string[] {
  return inLines(elements.map(([element, value]) => (value === '' ? element : `${element} : ${value}`))).map(
    (text) => `add element ${at} ${set} { ${text} }`,
  )
}

function removeElements(at: string, set: string, elements: readonly string[]): readonly string[] {
  return inLines(elements).map((text) => `delete element ${at} ${set} { ${text} }`)
}

function inLines(elements: readonly string[]): readonly string[] {
  const count = Math.ceil(elements.length / ELEMENTS_OF_A_LINE)
  return Array.from({ length: count }, (_, line) =>
    elements.slice(line * ELEMENTS_OF_A_LINE, (line + 1) * ELEMENTS_OF_A_LINE).join(', '),
  )
}

export function ruleText({ matches, verdict }: Rule): string {
  return [...matches.map(matchText), verdictText(verdict)].join(' ')
}

function matchText(match: Match): string {
  switch (match.is) {
    case 'member':
      return `${IP[match.family]} ${SIDE[match.side]} @${match.set}`
    case 'block':
      return blockText(`${IP[match.block.family]} ${SIDE[match.side]}`, match.block, match.except)
    case 'ports':
      return match.ranges.length === 0
        ? `meta l4proto ${match.protocol}`
        : `${match.protocol} dport { ${match.ranges.map(rangeText).join(', ')} }`
    case 'named':
      return `${IP[match.family]} daddr . meta l4proto . th dport @${match.set}`
    case 'pair':
      return `${IP[match.family]} saddr . ${IP[match.family]} daddr @${match.set}`
    case 'established':
      return 'ct state established,related'
    case 'neighbours':
      return 'icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }'
    case 'router':
      return 'icmpv6 type { nd-router-advert, nd-redirect }'
  }
}

/** Exceptions may nest, which an nft set would reject: each one is its own match. */
function blockText(field: string, block: Cidr, except: readonly Cidr[]): string {
  // nft rejects prefix length 0 on its own.
  const within =
    block.prefixLength === 0 ? `meta nfproto ${block.family === 4 ? 'ipv4' : 'ipv6'}` : `${field} ${formatCidr(block)}`
  return [within, ...except.map((hole) => `${field} != ${formatCidr(hole)}`)].join(' ')
}

function rangeText([first, last]: PortRange): string {
  return first === last ? `${first}` : `${first}-${last}`
}

function verdictText(verdict: Verdict): string {
  switch (verdict.do) {
    case 'accept':
    case 'drop':
      return verdict.do
    case 'jump':
    case 'goto':
      return `${verdict.do} ${verdict.chain}`
    case 'look up':
      return `${IP[verdict.family]} ${SIDE[verdict.side]} vmap @${verdict.map}`
  }
}
