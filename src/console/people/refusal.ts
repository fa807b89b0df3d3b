/** Rewrites the list of missing rights in a refusal of the server, so that people can read it. */
import { RequestError } from '../api/request.ts'
import { ruleText } from '../rights/rule-row.ts'

const LIST = /(\w+):\[((?:"(?:[^"\\]|\\.)*" ?)*)\]/g
const QUOTED = /"((?:[^"\\]|\\.)*)"/g

/** `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}` becomes `get, list deployments of apps`. */
export function readableRefusal(message: string): string {
  return message
    .split('\n')
    .map((line) => (line.startsWith('{') && line.endsWith('}') ? `– ${rightText(line)}` : line))
    .join('\n')
}

function rightText(line: string): string {
  const lists = new Map([...line.matchAll(LIST)].map(([, name = '', texts = '']) => [name, quoted(texts)]))
  const of = (name: string): string[] => [...(lists.get(name) ?? [])]
  return ruleText({
    verbs: of('Verbs'),
    apiGroups: of('APIGroups'),
    resources: of('Resources'),
    resourceNames: of('ResourceNames'),
    nonResourceURLs: of('NonResourceURLs'),
  })
}

function quoted(texts: string): readonly string[] {
  return [...texts.matchAll(QUOTED)].map(([, text = '']) => text)
}

/** Rejects with the RequestError of the request, in these words. */
export async function inWords<T>(request: Promise<T>): Promise<T> {
  try {
    return await request
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    throw new RequestError({ ...error.status, message: readableRefusal(error.message) }, { cause: error })
  }
}
