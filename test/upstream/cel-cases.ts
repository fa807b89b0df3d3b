/** Parses the command line of the scripts that run recorded CEL cases. */
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/** Interface facts, which are kept beside the repository. */
const FACTS = process.env['HYPERKUBE_API_FACTS'] ?? join(import.meta.dirname, '../../../shared/kubernetes-api')

export function casesFromArguments(): { readonly path: string; readonly wanted: readonly string[] } {
  const { values, positionals } = parseArgs({
    options: { cases: { type: 'string', default: join(FACTS, 'cel/cases.jsonl') } },
    allowPositionals: true,
  })
  return { path: values.cases, wanted: positionals }
}
