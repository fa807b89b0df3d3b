/**
 * Compares the size of the sources at several commits: `node scripts/house.ts COMMIT …`. Prints files, lines and test
 * lines of each top-level folder, then the files added and removed between the commits.
 */
import { execFileSync } from 'node:child_process'

interface Room {
  files: number
  atRoot: number
  lines: number
  testLines: number
}

/** Generated, and so neither read nor counted as written. */
const GENERATED = /^src\/apis\/(?!.*\.test\.ts$)/
const TEST = /\.(?:test|suite|fixture)\.ts$|^test\//

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', maxBuffer: 64 << 20 })
}

/** Rooms of `src`, and the folders beside it as one room each. */
function houseAt(commit: string): Map<string, Room> {
  const rooms = new Map<string, Room>()
  for (const line of git('grep', '-c', '', commit, '--', '*.ts', '*.mjs').trim().split('\n')) {
    const [, path = '', count = '0'] = /^[^:]*:(.*):(\d+)$/.exec(line) ?? []
    if (GENERATED.test(path)) continue
    const [top = '', second = '', ...deeper] = path.split('/')
    const name = top === 'src' && deeper.length > 0 ? second : top
    const room = rooms.get(name) ?? { files: 0, atRoot: 0, lines: 0, testLines: 0 }
    rooms.set(name, room)
    if (TEST.test(path)) room.testLines += Number(count)
    else {
      room.files++
      room.lines += Number(count)
      if (deeper.length === 1) room.atRoot++
    }
  }
  return rooms
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.map((cell) => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)).join(' | ')} |`
}

function totalOf(house: ReadonlyMap<string, Room>): Room {
  const total = { files: 0, atRoot: 0, lines: 0, testLines: 0 }
  for (const room of house.values()) for (const key of Object.keys(total) as (keyof Room)[]) total[key] += room[key]
  return total
}

function cellsOf(room: Room | undefined): (string | number)[] {
  return room === undefined ? ['', '', '', ''] : [room.files, room.atRoot, room.lines, room.testLines]
}

const commits = process.argv.slice(2)
const houses = commits.map(houseAt)
const names = [...new Set(houses.flatMap((house) => [...house.keys()]))].sort()
const show = (line: string): boolean => process.stdout.write(`${line}\n`)
show(row(['room', ...commits.flatMap((commit) => [`${commit}: files`, 'at root', 'lines', 'of tests'])]))
show(row(['---', ...commits.flatMap(() => ['---:', '---:', '---:', '---:'])]))
for (const name of names) show(row([name, ...houses.flatMap((house) => cellsOf(house.get(name)))]))
show(row(['all', ...houses.flatMap((house) => cellsOf(totalOf(house)))]))
for (const [at, commit] of commits.slice(1).entries()) {
  const before = commits[at] ?? ''
  const changed = git('diff', '-M', '--shortstat', `${before}..${commit}`, '--', '*.ts', '*.mjs', ':!src/apis').trim()
  show(`\n${before} to ${commit}: ${changed}`)
}
