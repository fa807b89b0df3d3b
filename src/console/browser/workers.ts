/** Starts workers. The Content-Security-Policy of the page permits only the scripts that the build names here. */

/** The build puts the addresses in. */
declare const WORKER_URLS: { readonly lists: string; readonly logs: string }

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (name: string) => string }): TrustedPolicy
}

interface TrustedPolicy {
  createScriptURL(name: string): string
}

let policy: TrustedPolicy | undefined

export function startWorker(name: keyof typeof WORKER_URLS): Worker {
  policy ??= createPolicy()
  return new Worker(policy.createScriptURL(name), { type: 'module', name })
}

function createPolicy(): TrustedPolicy {
  const rules = { createScriptURL: (name: string) => WORKER_URLS[name as keyof typeof WORKER_URLS] }
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes }
  return trustedTypes?.createPolicy('hyperkube', rules) ?? rules
}
