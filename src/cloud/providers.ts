/** Providers by name: those that are built in, or a module of that name. */
import { pathToFileURL } from 'node:url'

import { createLocalProvider } from './local.ts'
import type { CloudProvider, CreateProvider, ProviderOptions } from './provider.ts'

const BUILT_IN: Readonly<Record<string, CreateProvider>> = {
  /** Nothing at all: for those who want the program to be there and to do nothing. */
  none: () => ({ name: 'none' }),
  local: () => createLocalProvider(),
}

export class UnknownProvider extends Error {}

/** `name` is one of ours, a path that begins with a dot or a slash, or the name of a package. Throws UnknownProvider. */
export async function loadProvider(name: string, cwd: string, options: ProviderOptions): Promise<CloudProvider> {
  const create = BUILT_IN[name] ?? (await fromModule(name, cwd))
  return create(options)
}

async function fromModule(name: string, cwd: string): Promise<CreateProvider> {
  const where = /^\.{0,2}\//.test(name) ? new URL(name, pathToFileURL(`${cwd}/`)).href : name
  let loaded: { readonly createProvider?: unknown }
  try {
    loaded = (await import(where)) as typeof loaded
  } catch (cause) {
    throw new UnknownProvider(`unknown cloud provider "${name}": ${(cause as Error).message}`, { cause })
  }
  if (typeof loaded.createProvider !== 'function')
    throw new UnknownProvider(`unknown cloud provider "${name}": its module has no createProvider`)
  return loaded.createProvider as CreateProvider
}
