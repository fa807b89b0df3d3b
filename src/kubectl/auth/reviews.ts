/** Objects that are answered and not kept: reviews of access and of who asks. */
import { readJson } from '#lib/json.ts'

import type { Rest } from '../rest.ts'

export async function postJson<T>(rest: Rest, path: string, body: object): Promise<T> {
  return readJson(await rest.raw({ method: 'POST', path, body })) as T
}
