/** Looks up a provider by name: built in, or a module. */
import { pathToFileURL } from 'node:url'

import { createLocalProvider } from './local.ts'
import type { CloudProvider, CreateProvider, ProviderOptions } from './provider.ts'

const BUILT_IN: Readonly<Record<string, CreateProvider>> = {
  /** Does nothing. */
  none: () => ({ name: 'none' }),
  local: () => createLocalProvider(),
}

export class UnknownProvider extends Error {}

/** `name` is a built-in provider, a path that begins with a dot or slash, or a package. Throws UnknownProvider. */
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
