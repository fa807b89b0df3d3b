/**
 * `--applyset`: objects that are applied together form a set, recorded in a parent object. Members have a label with
 * the id of the set. The parent lists the kinds and namespaces of members, so that pruning finds members that the files
 * no longer contain.
 */
import { createHash } from 'node:crypto'

import type { ServedKind } from '#client/discovery.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { apiVersionOf, groupKindText } from '#meta/kind.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { GIT_VERSION } from '#model/version.ts'

import type { Info } from '../builder/select-options.ts'
import type { Invocation } from '../command.ts'
import { asError, failuresOf, KubectlError } from '../errors.ts'
import { type DryRun, dryRunQuery, withDryRun } from '../flag-sets.ts'
import { logWarning } from '../klog.ts'
import { printerOf } from '../printing.ts'
import { resourcePath } from '../related-objects.ts'
import type { Mapper } from '../session/mapper.ts'
import type { AnyObject } from '../session/rest.ts'

const DOMAIN = 'applyset.kubernetes.io'
const TOOLING = `${DOMAIN}/tooling`
const NAMESPACES = `${DOMAIN}/additional-namespaces`
const KINDS = `${DOMAIN}/contains-group-kinds`
/** The annotation that older versions wrote for the kinds. */
const RESOURCES = `${DOMAIN}/contains-group-resources`
const ID = `${DOMAIN}/id`
const PART_OF = `${DOMAIN}/part-of`
const PARENT_TYPE = `${DOMAIN}/is-parent-type`

const TOOL = 'kubectl'
const MANAGER = `${TOOL}-applyset`
const BUILT_IN_PARENTS = ['secrets', 'configmaps']

export interface Parent {
  readonly kind: ServedKind
  readonly name: string
  /** Empty for a cluster-scoped parent, or if the line gives no namespace. */
  readonly namespace: string
}

/** Its value is `applyset-HASH-v1`, of the parent's name, namespace, kind and group. */
export function applySetId({ kind, name, namespace }: Parent): string {
  const text = [name, namespace, kind.kind, kind.group].join('.')
  return `applyset-${createHash('sha256').update(text).digest('base64url')}-v1`
}

/** The contents of a set: kinds as `Kind.group`, and namespaces. */
export interface Members {
  readonly kinds: ReadonlyMap<string, ServedKind>
  readonly namespaces: ReadonlySet<string>
}

const NOTHING: Members = { kinds: new Map(), namespaces: new Set() }

export function membersOf(infos: readonly Info[]): Members {
  const namespaces = infos.filter(({ kind, namespace }) => kind.namespaced && namespace !== '')
  return {
    kinds: new Map(infos.map(({ kind }) => [groupKindText(kind), kind])),
    namespaces: new Set(namespaces.map(({ namespace }) => namespace)),
  }
}

function union(one: Members, other: Members): Members {
  return {
    kinds: new Map([...one.kinds, ...other.kinds]),
    namespaces: one.namespaces.union(other.namespaces),
  }
}

/** The fields of the parent that kubectl applies; it leaves all other fields alone. */
export function parentPatch(parent: Parent, { kinds, namespaces }: Members): JsonObject {
  const { kind, name, namespace } = parent
  const elsewhere = [...namespaces].filter((each) => each !== namespace)
  return {
    kind: kind.kind,
    apiVersion: apiVersionOf(kind),
    metadata: {
      name,
      ...(namespace !== '' && { namespace }),
      labels: { [ID]: applySetId(parent) },
      annotations: {
        [NAMESPACES]: elsewhere.sort().join(','),
        [KINDS]: [...kinds.keys()].sort().join(','),
        [TOOLING]: `${TOOL}/${GIT_VERSION}`,
      },
    },
  }
}

/** Parses `[RESOURCE][.GROUP]/NAME`; the default resource is Secret. Throws KubectlError. */
async function parseParent(text: string, mapper: Mapper): Promise<Pick<Parent, 'kind' | 'name'>> {
  const at = text.indexOf('/')
  const [type, name] = at < 0 ? ['secrets', text] : [text.slice(0, at), text.slice(at + 1)]
  const invalid = (why: string): KubectlError => new KubectlError(`invalid parent reference ${goQuote(text)}: ${why}`)
  if (name === '') throw invalid('name cannot be blank')
  const kind = await mapper.named(type).catch((error: unknown) => {
    if (!(error instanceof KubectlError)) throw error
    const [resource = '', ...group] = type.split('.')
    throw invalid(`no matches for ${group.join('.')}/, Resource=${resource}`)
  })
  return { kind, name }
}

type Context = Pick<Invocation, 'session' | 'stderr' | 'stdout' | 'clock' | 'cwd'> & {
  readonly flags: { readonly output: string; readonly 'grace-period': number }
}

interface ApplySetOptions {
  readonly dryRun: DryRun
  readonly fieldValidation: string
  /** The propagation policy for deletions. */
  readonly policy: string
}

/** Open it before anything is applied; `prune` closes it after everything was applied. */
export class ApplySet {
  readonly #context: Context
  readonly #parent: Parent
  readonly #options: ApplySetOptions
  #before: Members = NOTHING
  #now: Members = NOTHING

  private constructor(context: Context, parent: Parent, options: ApplySetOptions) {
    this.#context = context
    this.#parent = parent
    this.#options = options
  }

  /** Throws KubectlError if the parent's kind does not exist. */
  static async open(context: Context, reference: string, options: ApplySetOptions): Promise<ApplySet> {
    const { session } = context
    const { kind, name } = await parseParent(reference, await session.mapper())
    const { namespace, isExplicit } = await session.namespace()
    return new ApplySet(context, { kind, name, namespace: isExplicit && kind.namespaced ? namespace : '' }, options)
  }

  /** Throws KubectlError if the object may not be a parent. */
  async validate(): Promise<void> {
    const { kind, namespace } = this.#parent
    const errors: Error[] = []
    if (kind.namespaced && namespace === '') {
      errors.push(new KubectlError('namespace is required to use namespace-scoped ApplySet'))
    }
    if (!this.#isBuiltIn()) {
      const permitted = await this.#customParents().catch((error: unknown): string[] => {
        const why = asError(error).message
        errors.push(new KubectlError(`identifying allowed custom resource parent types: ${why}`))
        return []
      })
      if (!permitted.includes(`${kind.plural}.${kind.group}`)) {
        const what = goQuote(`${kind.group}/${kind.version}, Resource=${kind.plural}`)
        errors.push(new KubectlError(`resource ${what} is not permitted as an ApplySet parent`))
      }
    }
    const failed = failuresOf(errors)
    if (failed !== undefined) throw new KubectlError(failed.message)
  }

  #isBuiltIn(): boolean {
    const { group, version, plural } = this.#parent.kind
    return group === '' && version === 'v1' && BUILT_IN_PARENTS.includes(plural)
  }

  /** Kinds whose CustomResourceDefinition allows them as parents, as `plural.group`. */
  async #customParents(): Promise<string[]> {
    const rest = await this.#context.session.rest()
    const path = `${resourcePath('apiextensions.k8s.io/v1/customresourcedefinitions', '')}?labelSelector=${encodeURIComponent(PARENT_TYPE)}`
    const { items } = await rest.json<{ readonly items: readonly AnyObject[] }>(path)
    return items.map(({ metadata }) => metadata.name ?? '')
  }

  /** Returns the objects with the label of members. Throws KubectlError if one already has that label. */
  labelled(infos: readonly Info[]): Info[] {
    return infos.map((info) => {
      const { metadata } = info.object as AnyObject
      const { labels = {} } = metadata
      if (Object.hasOwn(labels, PART_OF)) {
        throw new KubectlError(`ApplySet label ${goQuote(PART_OF)} already set in input data`)
      }
      const member = { ...labels, [PART_OF]: applySetId(this.#parent) }
      return { ...info, object: { ...(info.object as AnyObject), metadata: { ...metadata, labels: member } } }
    })
  }

  /**
   * Adds the new kinds and namespaces to the parent before anything is applied, so that an interrupted apply forgets no
   * member.
   */
  async begin(infos: readonly Info[]): Promise<void> {
    this.#before = await this.#read()
    this.#now = membersOf(infos)
    await this.#update(union(this.#before, this.#now))
  }

  /** Deletes members that were not applied, then removes their kinds and namespaces from the parent. */
  async prune(applied: readonly Info[]): Promise<void> {
    const { session, stdout } = this.#context
    const { dryRun } = this.#options
    const printer = await printerOf(this.#context, { operation: withDryRun('pruned', dryRun) })
    const rest = await session.rest()
    for (const { kind, namespace, object } of await this.#leftovers(applied)) {
      const { name = '' } = object.metadata
      if (dryRun !== 'client') {
        await rest.delete({ kind, namespace, name }, this.#deletion()).catch((cause: unknown) => {
          const what = `${groupKindText(kind)} ${namespace === '' ? '' : `${namespace}/`}${name}`
          throw new KubectlError(`pruning ${what}: ${asError(cause).message}`, { cause })
        })
      }
      printer.print(object as unknown as JsonObject, stdout)
    }
    await this.#update(this.#now).catch((cause: unknown) => {
      const why = asError(cause).message
      throw new KubectlError(`apply and prune succeeded, but ApplySet update failed: ${why}`, { cause })
    })
  }

  #deletion(): object {
    const { dryRun, policy } = this.#options
    const grace = this.#context.flags['grace-period']
    return {
      ...(grace >= 0 && { gracePeriodSeconds: grace }),
      propagationPolicy: policy,
      ...(dryRun === 'server' && { dryRun: ['All'] }),
    }
  }

  async #leftovers(
    applied: readonly Info[],
  ): Promise<{ readonly kind: ServedKind; readonly namespace: string; readonly object: AnyObject }[]> {
    const rest = await this.#context.session.rest()
    const kept = new Set(applied.map(({ object }) => object?.metadata.uid))
    const query = { labelSelector: `${PART_OF}=${applySetId(this.#parent)}` }
    const { kinds, namespaces } = this.#before
    const scopes = [...kinds.values()].flatMap((kind) =>
      (kind.namespaced ? [...namespaces] : ['']).map((namespace) => ({ kind, namespace })),
    )
    const found = scopes.map(async ({ kind, namespace }) => {
      const list = await rest.get({ kind, namespace }, { query }).catch((cause: unknown) => {
        const what = `${kind.group}/${kind.version}, Kind=${kind.kind}`
        throw new KubectlError(`listing ${what} objects for pruning: ${asError(cause).message}`, { cause })
      })
      const items = (list['items'] as AnyObject[]).filter(({ metadata }) => !kept.has(metadata.uid))
      const typed = { apiVersion: apiVersionOf(kind), kind: kind.kind }
      return items.map((item) => ({ kind, namespace, object: { ...item, ...typed } }))
    })
    return (await Promise.all(found)).flat()
  }

  /** Reads the contents of the set from the parent; empty if the parent does not exist yet. */
  async #read(): Promise<Members> {
    const { kind, name, namespace } = this.#parent
    const rest = await this.#context.session.rest()
    const object = await rest.get({ kind, namespace, name }).catch((cause: unknown) => {
      if (isNotFound(cause)) return undefined
      const why = asError(cause).message
      throw new KubectlError(`failed to fetch ApplySet parent object ${this.#text()}: ${why}`, { cause })
    })
    if (object === undefined) {
      if (this.#isBuiltIn()) return NOTHING
      throw new KubectlError('custom resource ApplySet parents cannot be created automatically')
    }
    const { labels = {}, annotations = {} } = object.metadata
    const problem = this.#problemIn(labels, annotations)
    if (problem !== undefined) throw new KubectlError(`ApplySet parent object ${this.#text()} ${problem}`)
    const kinds = await this.#kindsIn(annotations).catch((cause: unknown) => {
      throw new KubectlError(`parsing ApplySet annotation on ${this.#text()}: ${asError(cause).message}`, { cause })
    })
    const listed = (annotations[NAMESPACES] ?? '').split(',').filter(Boolean)
    return { kinds, namespaces: new Set([...listed, ...(namespace === '' ? [] : [namespace])]) }
  }

  /** The name from the command line, in quotes. */
  #text(): string {
    const { kind, name } = this.#parent
    return goQuote(`${kind.plural}.${kind.group}/${name}`)
  }

  #problemIn(
    labels: Readonly<Record<string, string>>,
    annotations: Readonly<Record<string, string>>,
  ): string | undefined {
    const tooling = annotations[TOOLING]
    if (tooling === undefined) return `already exists and is missing required annotation ${goQuote(TOOLING)}`
    const tool = tooling.includes('/') ? tooling.slice(0, tooling.lastIndexOf('/')) : tooling
    if (tool !== TOOL) return `already exists and is managed by tooling ${goQuote(tool)} instead of "${TOOL}"`
    const id = labels[ID]
    if (id === undefined) return `exists and does not have required label ${ID}`
    const wanted = applySetId(this.#parent)
    if (id === wanted) return undefined
    return `exists and has incorrect value for label ${goQuote(ID)} (got: ${id}, want: ${wanted})`
  }

  async #kindsIn(annotations: Readonly<Record<string, string>>): Promise<Map<string, ServedKind>> {
    const mapper = await this.#context.session.mapper()
    const { [KINDS]: listed, [RESOURCES]: older = '' } = annotations
    if (listed === undefined && older === '') {
      throw new Error(`kubectl requires the ${goQuote(KINDS)} annotation to be set on all ApplySet parent objects`)
    }
    const kinds: ServedKind[] = []
    for (const text of (listed ?? older).split(',').filter(Boolean)) {
      const [kind = '', ...group] = text.split('.')
      const found = listed === undefined ? mapper.named(text) : mapper.ofKind(group.join('.'), kind)
      kinds.push(
        await found.catch((error: unknown) => {
          const why = asError(error).message
          throw new Error(
            listed === undefined
              ? `invalid group resource in ${goQuote(RESOURCES)} annotation: ${why}`
              : `could not find mapping for kind in ${goQuote(KINDS)} annotation: ${why}`,
          )
        }),
      )
    }
    return new Map(kinds.map((kind) => [groupKindText(kind), kind]))
  }

  async #update(members: Members): Promise<void> {
    const { dryRun, fieldValidation } = this.#options
    if (dryRun === 'client') return
    const { kind, name, namespace } = this.#parent
    const rest = await this.#context.session.rest()
    const patch = parentPatch(this.#parent, members)
    const send = (force: boolean): Promise<AnyObject> => {
      const query = { fieldManager: MANAGER, fieldValidation, force: String(force), ...dryRunQuery(dryRun) }
      return rest.patch({ kind, namespace, name }, 'apply', patch, query)
    }
    try {
      await send(false).catch((error: unknown) => {
        if (!isConflict(error)) throw error
        const why = `WARNING: failed to update ApplySet: ${asError(error).message}`
        const then = `ApplySet field manager ${MANAGER} should own these fields. Retrying with conflicts forced.`
        logWarning(this.#context, 'applyset.go:444', `${why}\n${then}`)
        return send(true)
      })
    } catch (cause) {
      throw new KubectlError(`failed to update ApplySet: ${asError(cause).message}`, { cause })
    }
  }
}
