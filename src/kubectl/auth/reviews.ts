/** Sends review objects of the authentication and authorization APIs, which the server answers without storing them. */
import { readJson } from '#lib/json/json.ts'

import type { Rest } from '../session/rest.ts'

export async function postJson<T>(rest: Rest, path: string, body: object): Promise<T> {
  return readJson(await rest.raw({ method: 'POST', path, body })) as T
}
