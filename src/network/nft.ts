/** Tables of nftables that are ours alone: replaced whole in one transaction, or removed. Those of others are never named. */
import { execFile } from 'node:child_process'

export interface NftTable {
  readonly family: 'ip' | 'ip6' | 'inet'
  readonly name: string
}

/** Its chains, as `nft -f` reads them; no word of it comes from outside unparsed. */
export function replaceTable({ family, name }: NftTable, chains: readonly string[]): string {
  const table = `table ${family} ${name}`
  return [`add ${table}`, `delete ${table}`, `${table} {`, ...chains, '}', ''].join('\n')
}

/** Harmless where there is none. */
export function removeTable({ family, name }: NftTable): string {
  return `add table ${family} ${name}\ndelete table ${family} ${name}\n`
}

/** All of it, or nothing. `enter`: the words before the program that lead into another namespace. */
export function applyNft(script: string, enter: readonly string[] = []): Promise<void> {
  return run([...enter, 'nft', '-f', '-'], script).then(() => undefined)
}

function run([program = 'nft', ...args]: readonly string[], input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`nft: ${stderr.trim() || error.message}`, { cause: error }))
    })
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}
