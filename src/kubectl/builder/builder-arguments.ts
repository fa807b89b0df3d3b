/** Parses the arguments `TYPE NAME…`, `TYPE/NAME…`, `TYPE,TYPE` and categories, with upstream's errors. */
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import type { SelectOptions, Tuple } from './select-options.ts'

export interface BuilderArguments {
  readonly types: readonly string[]
  readonly names: readonly string[]
  readonly tuples: readonly Tuple[]
  readonly labelSelector: string | undefined
}

/** Throws KubectlError. */
export async function readArguments(options: SelectOptions): Promise<BuilderArguments> {
  const { all, labelSelector: given = '', fieldSelector = '', resourceNames, resourceTypes = [] } = options
  const selector = given.trim()
  if (all && (selector !== '' || fieldSelector.trim() !== '')) {
    throw new KubectlError("setting 'all' parameter but found a non empty selector. ")
  }
  const { args, tuples } = splitArguments(options.args ?? [])
  const types = [...resourceTypes, ...(await typesIn(options, args[0]))]
  const isEverything = options.allowEmptySelector === true && args.length === 1
  const labelSelector = selector !== '' ? selector : all || isEverything ? '' : undefined
  return { types, names: args.slice(1), tuples: [...tuples, ...tuplesOf(resourceNames)], labelSelector }
}

async function typesIn({ session }: SelectOptions, first: string | undefined): Promise<string[]> {
  if (first === undefined) return []
  const mapper = await session.mapper()
  const expanded: string[] = []
  for (const type of first.split(',')) expanded.push(...((await mapper.category(type)) ?? [type]))
  return [...new Set(expanded)]
}

function tuplesOf(resourceNames: SelectOptions['resourceNames']): Tuple[] {
  const { type = '', names = [] } = resourceNames ?? {}
  return names.map((name) => {
    const tuple = splitTuple(name)
    if (tuple === undefined && type === '')
      throw new KubectlError(`the argument ${goQuote(name)} must be RESOURCE/NAME`)
    return tuple ?? { type, name }
  })
}

/** Either tuples, or types with names. */
export function splitArguments(given: readonly string[]): { args: string[]; tuples: Tuple[] } {
  const args = severalTypes(given)
  const withSlash = args.filter((arg) => arg.includes('/')).length
  if (withSlash === 0) return { args, tuples: [] }
  if (withSlash !== args.length) {
    throw new KubectlError(
      "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'",
    )
  }
  return { args: [], tuples: args.flatMap((arg) => splitTuple(arg) ?? []) }
}

/** `a,b x y` means `a/x a/y b/x b/y`. */
function severalTypes(args: readonly string[]): string[] {
  const [first = '', ...names] = args
  const types = [...new Set(first.split(','))]
  if (names.length === 0 || types.length < 2) return [...args]
  return types.flatMap((type) => names.map((name) => `${type}/${name}`))
}

export function splitTuple(text: string): Tuple | undefined {
  if (!text.includes('/')) return undefined
  const parts = text.split('/')
  if (parts.length !== 2) {
    throw new KubectlError('arguments in resource/name form may not have more than one slash')
  }
  const [type = '', name = ''] = parts
  if (type === '' || name === '' || type.includes(',')) {
    throw new KubectlError('arguments in resource/name form must have a single resource and name')
  }
  return { type, name }
}
