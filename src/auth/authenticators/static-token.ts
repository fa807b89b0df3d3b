/** Authenticates static tokens from the file of `--token-auth-file`: `token,user,uid,"group1,group2"` on each line. */
import { readRecords } from '#lib/files/csv.ts'
import { tokenKey } from '#lib/token-key.ts'

import { forAudiences, type TokenAuthenticator } from '../authenticator.ts'
import type { User } from '../user.ts'

/** Throws for a malformed file. The last of several lines with one token counts; lines without a token are skipped. */
export function createStaticTokenAuthenticator(
  csv: string,
  { apiAudiences }: { readonly apiAudiences: readonly string[] },
): TokenAuthenticator {
  const users = new Map<string, User>()
  for (const { line, fields } of readRecords(csv)) {
    const [token = '', name = '', uid = '', groups = ''] = fields
    if (fields.length < 3) {
      const need = 'must have at least 3 columns (token, user name, user uid)'
      throw new Error(`Token file ${need}, found ${fields.length} in line ${line}`)
    }
    if (token === '') continue
    users.set(tokenKey(token), { name, uid, groups: groups === '' ? [] : groups.split(','), extra: {} })
  }
  return (token, audiences) => {
    const user = users.get(tokenKey(token))
    return user === undefined ? undefined : forAudiences(user, audiences, apiAudiences)
  }
}
