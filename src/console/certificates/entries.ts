/** The rows of the page of certificates: each certificate once for all objects of a name, the first to end at the top. */
import type { KubeObject } from '#meta/object.ts'

import type { Ref } from '../objects/ref.ts'
import type { Tone } from '../parts/tone.ts'
import { type CertificateFacts, readPem } from './certificate.ts'
import { refOf, type Source } from './sources.ts'

export interface Entry {
  /** The same for copies of a certificate in objects of the same name, in other namespaces. */
  readonly key: string
  readonly at: Ref
  readonly field: string
  /** Undefined: the certificate cannot be read. */
  readonly facts?: CertificateFacts
  readonly error?: string
}

export function entriesOf(source: Source, object: KubeObject): readonly Entry[] {
  const at = refOf(source, object)
  return source.read(object).flatMap(({ field, pem }) =>
    readPem(pem).map(({ id, ...read }) => ({
      key: [source.kind, at.name, field, id].join('\n'),
      at,
      field,
      ...read,
    })),
  )
}

export interface Row extends Entry {
  /** Objects of the same name in other namespaces that have the same certificate. */
  readonly copies: number
}

export function rowsOf(entries: readonly Entry[]): readonly Row[] {
  const rows = new Map<string, Row>()
  for (const entry of entries) {
    const known = rows.get(entry.key)
    rows.set(entry.key, known === undefined ? { ...entry, copies: 0 } : { ...known, copies: known.copies + 1 })
  }
  return [...rows.values()].sort((a, b) => endOf(a) - endOf(b))
}

/** Those that cannot be read are the last. */
function endOf({ facts }: Entry): number {
  return facts?.notAfterMs ?? Number.MAX_SAFE_INTEGER
}

export function fits({ at, field, facts }: Row, filter: string): boolean {
  const texts = [at.name, at.namespace ?? '', at.kind, field, facts?.subject ?? '', facts?.issuer ?? '']
  return [...texts, ...(facts?.names ?? [])].some((text) => text.toLowerCase().includes(filter))
}

const DAY_MS = 24 * 3_600_000
/** Before its end, so long is time to renew a certificate. */
export const WARN_DAYS = 30

const YEAR_DAYS = 365
const MANY_DAYS = 2 * YEAR_DAYS

export interface EndState {
  readonly text: string
  readonly tone: Tone
}

export function stateOf({ facts }: Pick<Entry, 'facts'>, nowMs: number): EndState {
  if (facts === undefined) return { text: 'Unreadable', tone: 'bad' }
  const { notBeforeMs, notAfterMs } = facts
  if (nowMs > notAfterMs) return { text: 'Ended', tone: 'bad' }
  if (nowMs < notBeforeMs) return { text: 'Not valid yet', tone: 'bad' }
  const days = Math.floor((notAfterMs - nowMs) / DAY_MS)
  return { text: endText(days), tone: days < WARN_DAYS ? 'busy' : 'good' }
}

function endText(days: number): string {
  if (days === 0) return 'Ends today'
  if (days === 1) return 'Ends in 1 day'
  return days < MANY_DAYS ? `Ends in ${days} days` : `Ends in ${Math.floor(days / YEAR_DAYS)} years`
}

/** `12 certificates. 1 ended, 2 end within 30 days.` */
export function summaryText(rows: readonly Row[], nowMs: number): string {
  const tones = rows.map((row) => stateOf(row, nowMs))
  const ended = tones.filter(({ text }) => text === 'Ended').length
  const ending = tones.filter(({ tone }) => tone === 'busy').length
  const all = rows.length === 1 ? '1 certificate.' : `${rows.length.toLocaleString('en')} certificates.`
  if (ended + ending === 0) return `${all} None ends within ${WARN_DAYS} days.`
  return `${all} ${ended} ended, ${ending} ${ending === 1 ? 'ends' : 'end'} within ${WARN_DAYS} days.`
}
