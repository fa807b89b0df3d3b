/**
 * Creates CustomResourceDefinitions and their objects for integration tests. `WIRE_REFERENCE=https://host:port` runs
 * these tests against upstream's server.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Agent, get, request } from 'node:https'

import { sleep, realClock } from '#lib/clock.ts'
import { type ControlPlane, type ControlPlaneResponse, startControlPlane } from '#testing/control-plane.ts'

export const MERGE = { 'content-type': 'application/merge-patch+json' }
export const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
export const APPLY = { 'content-type': 'application/apply-patch+yaml' }
export const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
export type Json = any

export interface Version {
  readonly name: string
  readonly [member: string]: unknown
}

const OPEN = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }

/** `schema` of the spec alone. */
export function specSchema(properties: object, status?: object): object {
  const spec = { type: 'object', properties }
  return { openAPIV3Schema: { type: 'object', properties: { spec, ...(status !== undefined && { status }) } } }
}

/** A definition of one version, or of those given; the first is stored. */
export function definition(kind: string, more: Json = {}): Json {
  const { versions = [{ name: 'v1' }], names = {}, group = 'ex.io', scope = 'Namespaced', ...rest } = more
  const plural = `${kind.toLowerCase()}s`
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, ...rest.metadata },
    spec: {
      group,
      scope,
      names: { plural, kind, ...names },
      versions: versions.map((version: Version, at: number) => ({
        served: true,
        storage: at === 0,
        schema: OPEN,
        ...version,
      })),
      ...rest.spec,
    },
  }
}

export class Custom {
  readonly plane: ControlPlane

  constructor(plane: ControlPlane) {
    this.plane = plane
  }

  static async start(): Promise<Custom> {
    const reference = process.env['WIRE_REFERENCE']
    return new Custom(reference === undefined ? await startControlPlane() : referencePlane(reference))
  }

  ask(...args: Parameters<ControlPlane['request']>): Promise<ControlPlaneResponse> {
    return this.plane.request(...args)
  }

  /** The answer of what must succeed. */
  async must(...args: Parameters<ControlPlane['request']>): Promise<Json> {
    const answer = await this.ask(...args)
    assert.ok(answer.status < 300, `${args[0]} ${args[1]}: ${answer.status} ${answer.text}`)
    return answer.json()
  }

  /** The status and the message of what must be refused. */
  async refused(...args: Parameters<ControlPlane['request']>): Promise<string> {
    const answer = await this.ask(...args)
    assert.ok(answer.status >= 300, `${args[0]} ${args[1]}: ${answer.status} ${answer.text}`)
    if (!answer.text.startsWith('{')) return `${answer.status} ${answer.text}`
    return `${answer.status} ${(answer.json() as Json).message}`
  }

  /** Creates the definition and waits until it is established. */
  async define(body: Json): Promise<Json> {
    await this.must('POST', DEFINITIONS, body)
    return this.until(body.metadata.name, isEstablished)
  }

  /** Changes its spec. */
  async redefine(name: string, change: (spec: Json) => void): Promise<Json> {
    const live = await this.must('GET', `${DEFINITIONS}/${name}`)
    change(live.spec)
    return this.must('PUT', `${DEFINITIONS}/${name}`, live)
  }

  /** Waits until the definition satisfies the predicate, and returns it. */
  until(name: string, is: (definition: Json) => boolean): Promise<Json> {
    return this.eventually(() => this.must('GET', `${DEFINITIONS}/${name}`), is)
  }

  async eventually<T>(read: () => Promise<T>, is: (value: T) => boolean): Promise<T> {
    for (let tries = 0; ; tries++) {
      const value = await read()
      if (is(value)) return value
      assert.ok(tries < 500, `it never came: ${JSON.stringify(value)}`)
      await sleep(realClock, 10)
    }
  }

  async gone(name: string): Promise<void> {
    await this.eventually(
      () => this.ask('GET', `${DEFINITIONS}/${name}`),
      ({ status }) => status === 404,
    )
  }

  /** The answer to a watch, once it begins. */
  watch(path: string): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${this.plane.token}` }
    return new Promise((resolve, reject) => {
      const trust = this.plane.ca === undefined ? { rejectUnauthorized: false } : { ca: this.plane.ca }
      // A new connection for each watch, which closes with it.
      get(this.plane.url + path, { ...trust, headers, agent: false }, resolve).on('error', reject)
    })
  }
}

const ADMIN = 'admin-token'

/** As much of a control plane as these tests need. */
function referencePlane(url: string): ControlPlane {
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true })
  const ask: ControlPlane['request'] = (method, path, body, headers) =>
    new Promise((resolve, reject) => {
      const all = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json', ...headers }
      const sent = request(url + path, { method, agent, headers: all }, (answer) => {
        const pieces: Buffer[] = []
        answer.on('data', (piece: Buffer) => pieces.push(piece))
        answer.on('end', () => {
          const text = Buffer.concat(pieces).toString()
          const headerList = new Headers()
          for (const [name, values] of Object.entries(answer.headersDistinct)) {
            for (const value of values ?? []) headerList.append(name, value)
          }
          resolve({ status: answer.statusCode ?? 0, headers: headerList, text, json: () => JSON.parse(text) })
        })
      })
      sent.on('error', reject)
      sent.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body))
    })
  const stop = async (): Promise<void> => agent.destroy()
  return { url, token: ADMIN, request: ask, stop } as unknown as ControlPlane
}

export function isEstablished({ status }: Json): boolean {
  return conditionOf({ status }, 'Established')?.status === 'True'
}

export function conditionOf({ status }: Json, type: string): Json {
  return (status.conditions ?? []).find((one: Json) => one.type === type)
}

/** Type, status, reason and message of each. */
export function saysOf({ status }: Json): string[] {
  return status.conditions.map((one: Json) => `${one.type}=${one.status} ${one.reason}: ${one.message}`)
}

export const object = (kind: string, name: string, more: object = {}, apiVersion = 'ex.io/v1'): Json => ({
  apiVersion,
  kind,
  metadata: { name },
  ...more,
})
