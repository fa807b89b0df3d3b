/** Wraps the global fetch so that it trusts the CA of a test control plane and sends an administrator's token. */
import { getCACertificates, setDefaultCACertificates } from 'node:tls'

import type { ControlPlane } from '#testing/control-plane.ts'

const known = new Set<string>()

export function fetchFrom({ url, ca, token }: ControlPlane, path: string, init: RequestInit = {}): Promise<Response> {
  if (!known.has(ca)) {
    known.add(ca)
    setDefaultCACertificates([...getCACertificates('default'), ca])
  }
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${token}`)
  return fetch(url + path, { ...init, headers })
}
