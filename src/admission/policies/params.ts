/** Finds the parameter objects that a binding passes to its policy, by name or by labels. */
import type { ParamKind, ParamRef } from '#apis/admissionregistration/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import type { Registry, ServedResource } from '#apiserver/registry/registry.ts'
import { type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'

/** An unusable policy or binding, with upstream's text. */
export class ConfigurationError extends Error {
  override name = 'ConfigurationError'
}

export interface ParamSource {
  /** The resource of the parameter kind; undefined for a policy without parameters. Throws ConfigurationError. */
  resolve(kind: ParamKind | undefined): ServedResource | undefined
  /**
   * All parameters of a binding. A policy or binding without parameters is evaluated once; an empty result means that
   * the policy is not evaluated. Throws ConfigurationError.
   */
  collect(
    served: ServedResource | undefined,
    ref: ParamRef | undefined,
    namespace: string,
  ): Promise<readonly (KubeObject | undefined)[]>
}

export function createParamSource(registry: Registry): ParamSource {
  return {
    resolve(kind) {
      if (kind === undefined) return undefined
      const wanted = { ...parseApiVersion(kind.apiVersion ?? ''), kind: kind.kind ?? '' }
      const found = registry.findKind(wanted)
      if (found === undefined) {
        throw new ConfigurationError(`failed to find resource referenced by paramKind: '${gvkText(wanted)}'`)
      }
      return found
    },
    async collect(served, ref, namespace) {
      if (served === undefined || ref === undefined) return [undefined]
      const found = await find(served, ref, paramNamespace(served, ref, namespace))
      if (found.length === 0 && ref.parameterNotFoundAction === 'Deny') {
        throw new ConfigurationError('no params found for policy binding with `Deny` parameterNotFoundAction')
      }
      return found
    },
  }
}

function gvkText({ group, version, kind }: GroupVersionKind): string {
  return `${group}/${version}, Kind=${kind}`
}

function paramNamespace({ resource }: ServedResource, { namespace: given = '' }: ParamRef, own: string): string {
  if (!resource.kind.namespaced) {
    if (given === '') return ''
    throw new ConfigurationError('paramRef.namespace must not be provided for a cluster-scoped `paramKind`')
  }
  const namespace = given || own
  if (namespace !== '') return namespace
  throw new ConfigurationError('cannot use namespaced paramRef in policy binding that matches cluster-scoped resources')
}

async function find(
  { store, representation }: ServedResource,
  { name = '', selector }: ParamRef,
  namespace: string,
): Promise<KubeObject[]> {
  const shown = async (entries: readonly Entry[]): Promise<KubeObject[]> => {
    await representation.converter?.prepare(entries)
    return entries.map((entry) => representation.objectOf(entry))
  }
  if (name !== '') {
    const entry = await store.get(namespace, name)
    return entry === undefined ? [] : shown([entry])
  }
  const wanted = asSelector(selector)
  await store.collection.ready
  const slice = namespace === '' ? {} : { prefix: `${store.collection.prefix}${namespace}/` }
  const entries = store.collection.entries(slice)
  return shown(entries.filter(({ object }) => matchesLabels(wanted, object.metadata.labels)))
}
