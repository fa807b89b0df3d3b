// Loads the program: its sources in a checkout, else the bundle; `npm start` names one it made of those sources, which
// starts in half the time. Plain JavaScript, because type stripping costs 60 ms
// on a start without compile cache, and this file runs before there is one. The cache lives in the user's own cache
// folder, never in the shared temp folder that is Node's default: whoever can write there could plant code.
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { pathToFileURL } from 'node:url'

const { XDG_CACHE_HOME, HOME, LOCALAPPDATA, HYPERKUBE_BUNDLE } = process.env
const folder = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && `${HOME}/.cache`)
if (folder) enableCompileCache(`${folder}/hyperkube`)
const source = new URL('../src/cmd/entry.ts', import.meta.url)
const published = new URL('../dist/hyperkube.mjs', import.meta.url)
await import(HYPERKUBE_BUNDLE ? pathToFileURL(HYPERKUBE_BUNDLE) : existsSync(source) ? source : published)
