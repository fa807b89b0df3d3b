/**
 * Reader: the cluster as the asker may see it, now or at a moment. It has the asker's credentials, so an explanation
 * cannot show what the asker may not get. A refused request is a value.
 */
import type { Kind } from '#apis/kinds.ts'
import { type ApiClient, pathOf, type Selection, type Where } from '#client/api-client.ts'
import { readJson } from '#lib/json/json.ts'
import type { KubeObject } from '#meta/object.ts'
import { isForbidden, isNotFound, statusOf } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'

import { citeOf, fieldAt, versionOf } from './citation.ts'
import type { Evidence } from './explanation.ts'

/** The asker may not read it. */
export const HIDDEN = 'hidden'
/** The server keeps no history of it, or does not serve it. */
export const UNKEPT = 'unkept'

/** One change in a ChangeList of the server. */
export interface ReadChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly resourceVersion: string
  readonly time?: string
  /** After the change; before it, if the object was deleted. */
  readonly object: KubeObject
  readonly oldObject?: KubeObject
  /** Absent: the server does not know the writer. */
  readonly by?: {
    readonly user: string
    readonly verb?: string
    readonly manager?: string
    readonly because: readonly string[]
  }
}

export interface ReadChanges {
  readonly items: readonly ReadChange[]
  readonly omitted: number
  readonly from: { readonly resourceVersion: string; readonly time?: string }
}

export interface ReaderOptions {
  /** Of the asker; it reads the present. */
  readonly client: ApiClient
  /** `2026-11-18T03:00Z` or `rv:812`; absent: now. */
  readonly moment?: string | undefined
  readonly signal?: AbortSignal | undefined
}

const MAX_CHANGES = 1000
const MAX_BYTES = 256 << 20

interface Cited {
  readonly kind: Kind
  readonly where: Where
  readonly uid: string | undefined
}

export class Reader {
  /** Reads the state that is explained. */
  readonly client: ApiClient
  readonly moment: string | undefined
  readonly #present: ApiClient
  readonly #limits: { readonly signal?: AbortSignal }
  /** The objects that were cited, by `kind/namespace/name@version`, for `confirms`. */
  readonly #seen = new Map<string, Cited>()

  constructor({ client, moment, signal }: ReaderOptions) {
    this.#present = client
    this.moment = moment
    this.client = moment === undefined ? client : client.at(moment)
    this.#limits = signal === undefined ? {} : { signal }
  }

  /** Present time; that of the moment, if it is a time. */
  get nowMs(): number {
    const { moment = '' } = this
    return /^\d{4}-/.test(moment) ? epochMsOf(moment) : this.#present.clock.now()
  }

  /** Reads another moment with the same credentials. */
  at(moment: string): Reader {
    return new Reader({ client: this.#present, moment, ...this.#limits })
  }

  /** Undefined: it does not exist. */
  async get<T extends KubeObject>(kind: Kind<T>, where: Where): Promise<T | typeof HIDDEN | undefined> {
    return this.#attempt(() => this.client.get(kind, where, this.#limits), undefined)
  }

  /** Empty if the server does not serve the kind. */
  async list<T extends KubeObject>(kind: Kind<T>, selection: Selection = {}): Promise<readonly T[] | typeof HIDDEN> {
    return this.#attempt<readonly T[]>(
      async () => (await this.client.list(kind, { ...selection, ...this.#limits })).items,
      [],
    )
  }

  /** The changes of an object, or of all objects in a namespace without a name; oldest first. */
  async changes(
    kind: Kind,
    { namespace, name = '' }: Partial<Where>,
  ): Promise<ReadChanges | typeof HIDDEN | typeof UNKEPT> {
    const range = encodeURIComponent(`rv:0..${this.moment ?? ''}`)
    const path = `/past/${range}${pathOf(kind, { namespace, name })}?limit=${MAX_CHANGES}`
    return this.#attempt<ReadChanges | typeof UNKEPT>(async () => {
      const response = await this.#present.ask({ method: 'GET', path, ...this.#limits })
      const list = readJson(await response.bytes(MAX_BYTES)) as unknown as ReadChanges & { readonly kind?: string }
      return list.kind === 'ChangeList' ? list : UNKEPT
    }, UNKEPT)
  }

  /** Sends a review, such as a SelfSubjectAccessReview, to the present server. */
  async review<T extends KubeObject>(kind: Kind<T>, review: T): Promise<T | typeof HIDDEN | undefined> {
    return this.#attempt(() => this.#present.create(kind, review, this.#limits), undefined)
  }

  async #attempt<R>(read: () => Promise<R>, missing: R): Promise<R | typeof HIDDEN> {
    try {
      return await read()
    } catch (error) {
      if (isForbidden(error)) return HIDDEN
      if (isNotFound(error) || statusOf(error)?.code === 410) return missing
      throw error
    }
  }

  /** Cites fields of an object that this reader read, and remembers it for `confirms`. */
  cite<T extends KubeObject>(kind: Kind<T>, object: T, ...fieldPaths: readonly string[]): Evidence[] {
    const { namespace, name = '', uid } = object.metadata
    this.#seen.set(versionOf({ kind, object }), { kind, where: { namespace, name }, uid })
    return citeOf({ kind, object }, ...fieldPaths)
  }

  /**
   * Reads the cited fields again. False if one of them differs, so that the explanation is out of date. Fields of earlier
   * versions come from the history, which does not change.
   */
  async confirms(evidence: readonly Evidence[]): Promise<boolean> {
    const byObject = Map.groupBy(evidence, ({ object }) => object)
    const results = await Promise.all(
      Array.from(byObject, async ([version, fields]) => {
        const cited = this.#seen.get(version)
        if (cited === undefined) return true
        const object = await this.get(cited.kind, cited.where)
        if (object === undefined || object === HIDDEN || object.metadata.uid !== cited.uid) return false
        return fields.every(({ fieldPath, value }) => isEqual(fieldAt(object, fieldPath), value))
      }),
    )
    return results.every(Boolean)
  }
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
