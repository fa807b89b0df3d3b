// Loads the program: its sources in a checkout, else the bundle. Plain JavaScript, because type stripping costs 60 ms
// on a start without compile cache, and this file runs before there is one. The cache lives in the user's own cache
// folder, never in the shared temp folder that is Node's default: whoever can write there could plant code.
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'

const { XDG_CACHE_HOME, HOME, LOCALAPPDATA } = process.env
const folder = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && `${HOME}/.cache`)
if (folder) enableCompileCache(`${folder}/hyperkube`)
const source = new URL('../src/cmd/entry.ts', import.meta.url)
await import(existsSync(source) ? source : new URL('../dist/hyperkube.mjs', import.meta.url))
