/**
 * One audit event: a request at one of its stages, as in audit.k8s.io/v1. Its text is a latin1 string with one
 * character per byte, like the stored objects that it contains.
 */
import type { User } from '#auth/user.ts'
import { compareText, goQuote } from '#lib/go/text.ts'
import { quoteJson } from '#lib/json/write.ts'
import { latin1 } from '#lib/latin1.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { Status } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import type { Level, Stage } from './policy.ts'

export interface ObjectReference {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly apiGroup: string
  readonly apiVersion: string
  readonly resourceVersion: string
  readonly subresource: string
}

/** The members that all events of one request share. */
export interface EventSubject {
  readonly requestUri: string
  readonly verb: string
  /** Absent if authentication failed. */
  readonly user: User | undefined
  readonly impersonatedUser: User | undefined
  /** `impersonate:<mode>`, for constrained impersonation. */
  readonly impersonationConstraint: string
  readonly sourceIps: readonly string[]
  readonly userAgent: string
  readonly objectRef: ObjectReference | undefined
}

/** Immutable. */
export interface AuditEvent {
  readonly level: Level
  readonly auditId: string
  readonly stage: Stage
  readonly subject: EventSubject
  /** The JSON of the subject, made once for all its events by `subjectText`. */
  readonly subjectText: string
  readonly responseStatus: Partial<Status> | undefined
  /** JSON, one character per byte. */
  readonly requestObject: string | undefined
  readonly responseObject: string | undefined
  readonly receivedMs: number
  readonly stageMs: number
  readonly annotations: ReadonlyMap<string, string>
}

const TYPE_META = '"kind":"Event","apiVersion":"audit.k8s.io/v1",'

/** A line of the log, including the newline. */
export function eventLine(event: AuditEvent): string {
  return `{${TYPE_META}${eventFields(event)}}\n`
}

/** Events for a webhook, which gets them in a list. */
export function eventListText(events: readonly AuditEvent[]): string {
  const items = events.map((event) => `{${eventFields(event)}}`).join(',')
  return `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${items}]}`
}

function eventFields(event: AuditEvent): string {
  const { responseStatus, requestObject, responseObject, annotations } = event
  let text = `"level":"${event.level}","auditID":${quote(event.auditId)},"stage":"${event.stage}",${event.subjectText}`
  if (responseStatus !== undefined) text += `,"responseStatus":${statusText(responseStatus)}`
  if (requestObject !== undefined) text += `,"requestObject":${requestObject}`
  if (responseObject !== undefined) text += `,"responseObject":${responseObject}`
  text += `,"requestReceivedTimestamp":"${timeText(event.receivedMs)}","stageTimestamp":"${timeText(event.stageMs)}"`
  if (annotations.size > 0) text += `,"annotations":${annotationsText(annotations)}`
  return text
}

export function subjectText(subject: EventSubject): string {
  const { user, impersonatedUser, impersonationConstraint, sourceIps, userAgent, objectRef } = subject
  let text = `"requestURI":${quote(subject.requestUri)},"verb":${quote(subject.verb)}`
  text += `,"user":${user === undefined ? '{}' : userText(user)}`
  if (impersonatedUser !== undefined) text += `,"impersonatedUser":${userText(impersonatedUser)}`
  if (impersonationConstraint !== '')
    text += `,"authenticationMetadata":{"impersonationConstraint":${quote(impersonationConstraint)}}`
  if (sourceIps.length > 0) text += `,"sourceIPs":[${sourceIps.map(quote).join(',')}]`
  if (userAgent !== '') text += `,"userAgent":${quote(userAgent)}`
  if (objectRef !== undefined) text += `,"objectRef":${referenceText(objectRef)}`
  return text
}

/** The text of the last second, cached because events come in bursts. */
let last = { seconds: Number.NaN, text: '' }

function timeText(epochMs: number): string {
  const seconds = Math.floor(epochMs / 1000)
  if (seconds !== last.seconds) last = { seconds, text: microTimeOf(seconds * 1000).slice(0, -'000000Z'.length) }
  const micros = Math.floor((epochMs - seconds * 1000) * 1000)
  return `${last.text}${String(micros).padStart(6, '0')}Z`
}

function quote(text: string): string {
  return latin1(quoteJson(text))
}

/** The members that are not empty, in declaration order. */
function referenceText(reference: ObjectReference): string {
  const member = (name: string, value: string): string => (value === '' ? '' : `,"${name}":${quote(value)}`)
  const text =
    member('resource', reference.resource) +
    member('namespace', reference.namespace) +
    member('name', reference.name) +
    member('uid', reference.uid) +
    member('apiGroup', reference.apiGroup) +
    member('apiVersion', reference.apiVersion) +
    member('resourceVersion', reference.resourceVersion) +
    member('subresource', reference.subresource)
  return `{${text.slice(1)}}`
}

function userText(user: User): string {
  const extra = Object.keys(user.extra).sort(compareText)
  const parts = [
    ...(user.name === '' ? [] : [`"username":${quote(user.name)}`]),
    ...(user.uid === '' ? [] : [`"uid":${quote(user.uid)}`]),
    ...(user.groups.length === 0 ? [] : [`"groups":[${user.groups.map(quote).join(',')}]`]),
    ...(extra.length === 0
      ? []
      : [
          `"extra":{${extra.map((key) => `${quote(key)}:[${(user.extra[key] ?? []).map(quote).join(',')}]`).join(',')}}`,
        ]),
  ]
  return `{${parts.join(',')}}`
}

function statusText({ status, message, reason, details, code }: Partial<Status>): string {
  let text = '{"metadata":{}'
  if ((status ?? '') !== '') text += `,"status":${quote(status ?? '')}`
  if ((message ?? '') !== '') text += `,"message":${quote(message ?? '')}`
  if ((reason ?? '') !== '') text += `,"reason":${quote(reason ?? '')}`
  if (details !== undefined) text += `,"details":${latin1(encodeJson(details))}`
  if ((code ?? 0) !== 0) text += `,"code":${code}`
  return `${text}}`
}

function annotationsText(annotations: ReadonlyMap<string, string>): string {
  const pairs = [...annotations].sort(([a], [b]) => compareText(a, b))
  return `{${pairs.map(([name, value]) => `${quote(name)}:${quote(value)}`).join(',')}}`
}

/** One text line: `--audit-log-format=legacy`, and the form of lost events in errors. */
export function legacyText(event: AuditEvent): string {
  const { subject, responseStatus } = event
  const { user, impersonatedUser: as, objectRef, sourceIps } = subject
  const groupsText = (groups: readonly string[]): string => groups.map(goQuote).join(',')
  const hasUser = user !== undefined && user.name !== ''
  const shown: readonly (readonly [name: string, value: string])[] = [
    ['id', event.auditId],
    ['stage', event.stage],
    ['ip', sourceIps[0] ?? '<unknown>'],
    ['method', subject.verb],
    ['user', hasUser ? user.name : '<none>'],
    ['groups', hasUser && user.groups.length > 0 ? groupsText(user.groups) : '<none>'],
    ['as', as?.name ?? '<self>'],
    ['asgroups', as === undefined ? '<lookup>' : groupsText(as.groups)],
    ['user-agent', subject.userAgent],
    ['namespace', objectRef === undefined || objectRef.namespace === '' ? '<none>' : objectRef.namespace],
    ['uri', subject.requestUri],
  ]
  const pairs = shown.map(([name, value]) => `${name}=${goQuote(value)}`).join(' ')
  const response = responseStatus === undefined ? '<deferred>' : String(responseStatus.code ?? 0)
  return `${nanoTime(event.receivedMs)} AUDIT: ${pairs} response="${response}"`
}

/** RFC 3339 with as many decimals as needed. */
function nanoTime(epochMs: number): string {
  return microTimeOf(epochMs).replace(/\.?0*Z$/, 'Z')
}

/** Removes the objects and adds an annotation that notes it. */
export function withoutObjects(event: AuditEvent): AuditEvent {
  const annotations = new Map(event.annotations).set('audit.k8s.io/truncated', 'true')
  return { ...event, requestObject: undefined, responseObject: undefined, annotations }
}
