/** Sends a planned edit to the server, as a dry run or for good. */
import type { KubeObject } from '#meta/object.ts'

import { type RequestError, send, type Status } from '../api/request.ts'
import { type EditPlan, FIELD_MANAGER } from './changes.ts'
import { parseFieldPath } from './field-path.ts'
import type { ParsedDocument, Problem } from './yaml-text.ts'

export interface SendOptions {
  readonly isDryRun: boolean
  /** Takes over fields that other managers own. */
  readonly isForced: boolean
}

export interface Sent {
  readonly object: KubeObject
  readonly isNew: boolean
  readonly warnings: readonly string[]
}

/** Rejects with RequestError. */
export async function sendEdit(
  path: string,
  plan: Exclude<EditPlan, { type: 'nothing' }>,
  options: SendOptions,
): Promise<Sent> {
  const isApply = plan.type === 'apply'
  const query = new URLSearchParams({
    fieldManager: FIELD_MANAGER,
    fieldValidation: 'Strict',
    ...(options.isDryRun && { dryRun: 'All' }),
    ...(isApply && options.isForced && { force: 'true' }),
  })
  const response = await send(`${path}?${query.toString()}`, {
    method: 'PATCH',
    body: plan.body,
    type: isApply ? 'application/apply-patch+yaml' : 'application/json-patch+json',
  })
  return sentOf(response)
}

/** Creates an object whose name the server makes. */
export async function sendNew(path: string, body: object, { isDryRun }: Pick<SendOptions, 'isDryRun'>): Promise<Sent> {
  const query = new URLSearchParams({
    fieldManager: FIELD_MANAGER,
    fieldValidation: 'Strict',
    ...(isDryRun && { dryRun: 'All' }),
  })
  return sentOf(await send(`${path}?${query.toString()}`, { method: 'POST', body }))
}

async function sentOf(response: Response): Promise<Sent> {
  const object = (await response.json()) as KubeObject
  return { object, isNew: response.status === 201, warnings: warningsOf(response.headers.get('warning') ?? '') }
}

/** `299 - "words", 299 - "more"` */
export function warningsOf(header: string): readonly string[] {
  return [...header.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
}

export interface Conflict {
  readonly field: string
  readonly manager: string
}

/** The fields that other managers own, from the server's refusal of an apply. */
export function conflictsOf({ details }: Status): readonly Conflict[] {
  return (details?.causes ?? [])
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .map(({ field = '', message = '' }) => ({
      field: field.replace(/^\./, ''),
      manager: /conflict with "([^"]*)"/.exec(message)?.[1] ?? message,
    }))
}

/** The words of a refusal at the fields that they name. */
export function problemsOf(
  { status, message }: RequestError,
  document: ParsedDocument | undefined,
): readonly Problem[] {
  const causes = (status.details?.causes ?? []).map(({ field = '', message: words = '' }) => ({ field, words }))
  const unknown = [...message.matchAll(/unknown field "([^"]+)"/g)].map(([words, field = '']) => ({ field, words }))
  const found = [...causes, ...unknown].filter(({ field }) => field !== '')
  return found.map(({ field, words }) => ({
    message: words,
    ...(document?.rangeOf(parseFieldPath(field)) ?? { from: 0, to: 0 }),
  }))
}
