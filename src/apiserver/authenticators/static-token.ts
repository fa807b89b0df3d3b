/** Static tokens, from the file of `--token-auth-file`: `token,user,uid,"group1,group2"` on each line. */
import type { User } from '../registry/resource.ts'
import { forAudiences, type TokenAuthenticator, tokenKey } from './authenticator.ts'

/** Throws on a malformed file. Of several lines with one token the last counts; lines without one are skipped. */
export function createStaticTokenAuthenticator(
  csv: string,
  { apiAudiences }: { readonly apiAudiences: readonly string[] },
): TokenAuthenticator {
  const users = new Map<string, User>()
  for (const [number, record] of parseCsv(csv)) {
    const [token = '', name = '', uid = '', groups = ''] = record
    if (record.length < 3) {
      const need = 'must have at least 3 columns (token, user name, user uid)'
      throw new Error(`Token file ${need}, found ${record.length} in line ${number}`)
    }
    if (token === '') continue
    users.set(tokenKey(token), { name, uid, groups: groups === '' ? [] : groups.split(','), extra: {} })
  }
  return (token, audiences) => {
    const user = users.get(tokenKey(token))
    return user === undefined ? undefined : forAudiences(user, audiences, apiAudiences)
  }
}

/** Records with the number of their line. Fields may be quoted, quotes in them doubled; `#` is no comment. */
function parseCsv(text: string): [number, string[]][] {
  const lines = text.split(/\r?\n/)
  return lines.flatMap((line, at): [number, string[]][] => (line === '' ? [] : [[at + 1, parseRecord(line, at + 1)]]))
}

function parseRecord(line: string, number: number): string[] {
  const fields: string[] = []
  const pattern = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/gy
  for (let isLast = false; !isLast;) {
    const match = pattern.exec(line)
    if (match === null) throw new Error(`Token file has a stray quote in line ${number}`)
    const [, quoted, plain = '', end] = match
    fields.push(quoted === undefined ? plain.trimStart() : quoted.replaceAll('""', '"'))
    isLast = end === ''
  }
  return fields
}
